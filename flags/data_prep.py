"""Flags of data preparation: corpus, instances, local runner, vocabulary."""

from __future__ import annotations

import os

from absl import flags

from albert_tf import files
from data_prep.instances import InstanceConfig
from data_prep.local_runner import RunnerConfig
from data_prep.vocabulary import VocabularyConfig

FLAGS = flags.FLAGS


def define_input_flags(what: str) -> None:
    """Defines --input_file."""
    flags.DEFINE_list("input_file", None, f"{what}; a comma-separated list of paths and globs.")


def define_split_sentences_flag() -> None:
    """Defines --split_sentences."""
    flags.DEFINE_string(
        "split_sentences",
        "",
        "Language, e.g. en, whose rules split each line into sentences. Empty: a line is a "
        "sentence. A blank line ends a document either way.",
    )


def input_files() -> list[str]:
    """The files that --input_file names."""
    return files.expand_patterns(FLAGS.input_file, "--input_file")


def define_instance_flags() -> None:
    """Defines the flags of an InstanceConfig, named as in the official code."""
    default = InstanceConfig()
    flags.DEFINE_integer(
        "max_seq_length", default.max_seq_length, "Pieces of a record, padding included."
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        None,
        "Most masked pieces of a record. Default: max_seq_length x masked_lm_prob, rounded up "
        "(77 at 512). The official default, 20, masks only 4 % at length 512.",
    )
    flags.DEFINE_float("masked_lm_prob", default.masked_lm_prob, "Share of pieces to mask.")
    flags.DEFINE_integer("ngram", default.ngram, "Most words to mask in a row.")
    flags.DEFINE_bool(
        "favor_shorter_ngram", default.favor_shorter_ngram, "p(n) ~ 1/n; else longer runs lead."
    )
    flags.DEFINE_bool(
        "do_whole_word_mask", default.do_whole_word_mask, "Mask whole words; else single pieces."
    )
    flags.DEFINE_float(
        "short_seq_prob", default.short_seq_prob, "Probability of aiming at a shorter sequence."
    )
    flags.DEFINE_integer(
        "dupe_factor",
        default.dupe_factor,
        "How often to use each document, each time with other pairs and masks. 1 is enough if "
        "training masks on the fly or passes over the data once; disk use grows with it. The "
        "official default is 40.",
    )
    flags.DEFINE_integer("random_seed", default.random_seed, "Seed of everything random.")
    define_split_sentences_flag()


def instance_config() -> InstanceConfig:
    """The settings of records that the flags describe."""
    return InstanceConfig(
        max_seq_length=FLAGS.max_seq_length,
        max_predictions_per_seq=FLAGS.max_predictions_per_seq,
        masked_lm_prob=FLAGS.masked_lm_prob,
        ngram=FLAGS.ngram,
        favor_shorter_ngram=FLAGS.favor_shorter_ngram,
        do_whole_word_mask=FLAGS.do_whole_word_mask,
        short_seq_prob=FLAGS.short_seq_prob,
        dupe_factor=FLAGS.dupe_factor,
        random_seed=FLAGS.random_seed,
        split_sentences=FLAGS.split_sentences,
    )


def define_runner_flags() -> None:
    """Defines the flags of a RunnerConfig."""
    flags.DEFINE_string("output_dir", None, "Directory for the records and manifest.json.")
    flags.DEFINE_integer("num_shards", 4, "Number of TFRecord files.")
    flags.DEFINE_enum("compression", "none", ["none", "gzip"], "Compression of the records.")
    flags.DEFINE_integer("num_workers", 0, "Number of processes; 0 for one a core.")
    flags.DEFINE_integer(
        "shuffle_memory_mb", 1024, "Memory in MB for shuffling, of all processes together."
    )


def runner_config() -> RunnerConfig:
    """How and where to make records, as the flags say; creates the output directory."""
    return RunnerConfig(
        output_dir=files.make_output_directory(FLAGS.output_dir),
        num_shards=FLAGS.num_shards,
        compression=FLAGS.compression,
        num_workers=FLAGS.num_workers or os.cpu_count(),
        shuffle_memory_mb=FLAGS.shuffle_memory_mb,
    )


def define_vocabulary_flags() -> None:
    """Defines the flags of a VocabularyConfig but for the normalization."""
    default = VocabularyConfig()
    flags.DEFINE_string("output_dir", None, "Directory for spm.model and its companions.")
    flags.DEFINE_integer("vocab_size", default.vocab_size, "Pieces, special ones included.")
    flags.DEFINE_integer(
        "input_sentence_size",
        default.input_sentence_size,
        "Most lines to train on, drawn at random. Memory: about 600 bytes a line.",
    )
    flags.DEFINE_float(
        "character_coverage", default.character_coverage, "Share of characters to cover."
    )
    flags.DEFINE_multi_string(
        "user_defined_symbol",
        list(default.user_defined_symbols),
        "A text that is always a piece of its own; repeat the flag for more. Replaces the default.",
    )
    flags.DEFINE_integer("random_seed", default.random_seed, "Seed of the drawing of lines.")


def vocabulary_config() -> VocabularyConfig:
    """The settings of a vocabulary that the flags describe."""
    return VocabularyConfig(
        vocab_size=FLAGS.vocab_size,
        do_lower_case=FLAGS.do_lower_case,
        keep_accents=FLAGS.keep_accents,
        input_sentence_size=FLAGS.input_sentence_size,
        character_coverage=FLAGS.character_coverage,
        user_defined_symbols=tuple(FLAGS.user_defined_symbol),
        random_seed=FLAGS.random_seed,
    )


def define_inspection_flags() -> None:
    """Defines --num_examples."""
    flags.DEFINE_integer("num_examples", 3, "Number of records to print.", lower_bound=0)
