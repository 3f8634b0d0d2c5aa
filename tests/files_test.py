import os

import tensorflow as tf

from albert_tf import files
from albert_tf.errors import UserError


class FilesTest(tf.test.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = os.path.join(self.get_temp_dir(), self.id())
        os.makedirs(self.directory)

    def path(self, name, content="x"):
        path = os.path.join(self.directory, name)
        with open(path, "w") as handle:
            handle.write(content)
        return path

    def test_patterns_expand_sorted_and_without_repeats(self):
        b, a = self.path("b.txt"), self.path("a file [1].txt")
        self.assertEqual(files.expand_patterns([f"{self.directory}/*.txt", b, a], "--x"), [a, b])

    def test_a_pattern_without_match_and_a_directory_are_refused(self):
        for pattern in (f"{self.directory}/*.none", "/no/such/folder/*", self.directory):
            with self.assertRaisesRegex(UserError, f"--x={pattern[:8]}"):
                files.expand_patterns([pattern], "--x")

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(self):
        path = self.path("kept.txt", "old")
        with self.assertRaises(ZeroDivisionError), files.atomic_path(path) as temporary:
            with open(temporary, "w") as handle:
                handle.write("half")
            _ = 1 / 0
        with open(path) as handle:
            self.assertEqual(handle.read(), "old")
        self.assertEqual(os.listdir(self.directory), ["kept.txt"])

    def test_what_a_killed_write_left_is_overwritten_by_the_next(self):
        path = self.path("kept.txt", "old")
        if not (child := os.fork()):
            with files.atomic_path(path) as temporary:
                self.path(temporary, "half of something long")
                os._exit(9)  # As abrupt as kill -9.
        os.waitpid(child, 0)
        self.assertLen(os.listdir(self.directory), 2)
        files.write_text(path, "new")
        with open(path) as handle:
            self.assertEqual(handle.read(), "new")
        self.assertEqual(os.listdir(self.directory), ["kept.txt"])

    def test_json_keeps_text_that_has_no_utf8(self):
        value = {"cut \ud83d": ["東京 \udc80", "\\ud800", "😀"]}
        path = os.path.join(self.directory, "value.json")
        files.write_json(path, value)
        self.assertEqual(files.read_json(path, "--x"), value)

    def test_json_that_cannot_be_read_is_refused_in_one_line(self):
        for content in ("{", "[" * 100_000, "\x00"):
            with self.assertRaisesRegex(UserError, "not valid JSON: --x=.*bad.json"):
                files.read_json(self.path("bad.json", content), "--x")

    def test_missing_empty_and_directory_are_no_files(self):
        for path in ("", self.directory, f"{self.directory}/none", self.path("empty", "")):
            with self.assertRaisesRegex(UserError, "--x"):
                files.require_file(path, "--x")

    def test_a_file_cannot_be_an_output_directory(self):
        with self.assertRaisesRegex(UserError, "--output_dir=.*file.txt"):
            files.make_output_directory(self.path("file.txt"))


if __name__ == "__main__":
    tf.test.main()
