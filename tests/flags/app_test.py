"""What a script's end looks like to whoever started it."""

import contextlib
import io
import sys
from unittest import mock

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.errors import RunError, UserError
from flags import app


class AppTest(parameterized.TestCase, tf.test.TestCase):
    def run_with(self, error: BaseException) -> tuple[int, str]:
        """Exit status and stderr of a script whose work ends in `error`."""

        def main() -> None:
            raise error

        stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with (
            mock.patch.object(sys, "argv", ["script.py"]),
            contextlib.redirect_stderr(stderr),
            contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")),
            self.assertRaises(SystemExit) as end,
        ):
            app.run(main)
        return end.exception.code, stderr.buffer.getvalue().decode()

    @parameterized.parameters(
        (UserError("is bad", "--flag=x", "drop it"), 2, "is bad: --flag=x: drop it"),
        (RunError("loss not finite: step 3: lower the rate"), 1, "loss not finite"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (MemoryError(), 1, "no memory left"),
        (tf.errors.ResourceExhaustedError(None, None, "OOM when\nallocating"), 1, "OOM when all"),
        (tf.errors.NotFoundError(None, None, "shard\nis gone"), 1, "shard is gone"),
        (PermissionError(13, "Permission denied"), 2, "Permission denied"),
    )
    def test_what_is_no_fault_of_ours_is_one_line(self, error, status, message):
        code, stderr = self.run_with(error)
        self.assertEqual(code, status)
        self.assertLen(stderr.splitlines(), 1)
        self.assertStartsWith(stderr, "error: ")
        self.assertIn(message, stderr)

    def test_a_fault_of_ours_shows_its_trace(self):
        for error in (TypeError("ours"), tf.errors.InvalidArgumentError(None, None, "ours")):
            with self.assertRaisesRegex(type(error), "ours"):
                self.run_with(error)


if __name__ == "__main__":
    tf.test.main()
