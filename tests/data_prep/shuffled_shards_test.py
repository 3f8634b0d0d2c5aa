import itertools
import os
import random
import tempfile

import tensorflow as tf

from data_prep.shuffled_shards import KEY_RANGE, RecordSpill, write_shard


class ShuffledShardsTest(tf.test.TestCase):
    def setUp(self):
        super().setUp()
        generator = random.Random(0)
        self.records = [
            (generator.getrandbits(64), generator.randbytes(generator.randint(1, 99)))
            for _ in range(2000)
        ]
        self.records += [(0, b"least"), (KEY_RANGE - 1, b"most"), (7, b"same key"), (7, b"again")]

    def write(self, order, num_shards, memory_bytes, num_spills=1, compression=""):
        directory = tempfile.mkdtemp(dir=self.get_temp_dir())
        spill_dir = os.path.join(directory, "spill")
        os.mkdir(spill_dir)
        for part in range(num_spills):
            spill = RecordSpill(spill_dir, num_shards, buffer_bytes=500)
            for key, record in order[part::num_spills]:
                spill.add(key, record)
            spill.flush()
        contents = []
        for shard in range(num_shards):
            path = os.path.join(directory, f"shard{shard}")
            count = write_shard(spill_dir, shard, num_shards, path, compression, memory_bytes)
            found = list(tf.data.TFRecordDataset(path, compression).as_numpy_iterator())
            self.assertLen(found, count)
            contents.append(found)
        self.assertEmpty(os.listdir(spill_dir))
        return contents

    def test_records_come_in_the_order_of_their_keys(self):
        shards = self.write(self.records, 3, 1 << 30)
        expected = [record for _, record in sorted(self.records)]
        self.assertEqual(list(itertools.chain.from_iterable(shards)), expected)

    def test_shards_are_of_about_equal_size(self):
        for shard in self.write(self.records, 4, 1 << 30):
            self.assertBetween(len(shard), 400, 600)

    def test_neither_memory_nor_arrival_decides_what_is_written(self):
        expected = self.write(self.records, 3, 1 << 30)
        shuffled = random.Random(1).sample(self.records, len(self.records))
        self.assertEqual(self.write(shuffled, 3, 1 << 30, num_spills=2), expected)
        self.assertEqual(self.write(shuffled, 3, 3000), expected)
        self.assertEqual(self.write(shuffled, 3, 3000, compression="GZIP"), expected)

    def test_a_shard_without_records_leaves_no_file(self):
        directory = self.get_temp_dir()
        path = os.path.join(directory, "shard")
        self.assertEqual(write_shard(directory, 0, 1, path, "", 1 << 20), 0)
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    tf.test.main()
