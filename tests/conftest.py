"""Lets absl's test helpers work under pytest."""

from absl import flags

flags.FLAGS.mark_as_parsed()
