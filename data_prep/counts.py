"""What the totals of a run say: rates and means, and warnings of likely mistakes."""

from __future__ import annotations

from absl import logging

from data_prep.instances import Counts, InstanceConfig

MAX_UNKNOWN_RATE = 0.03
"""A larger share of <unk> hints at the wrong vocabulary or the wrong do_lower_case."""


def summarize(counts: Counts, max_seq_length: int) -> dict[str, float]:
    """Rates and means of the records, from integer totals."""

    def share(part: str, whole: str) -> float:
        return round(counts[part] / counts[whole], 5) if counts[whole] else 0.0

    padded = counts["records"] * max_seq_length
    return {
        "sentences_per_document": share("sentences", "documents"),
        "unknown_piece_rate": share("unknown_pieces", "pieces"),
        "mask_rate": share("masked_tokens", "tokens"),
        "swapped_share": share("swapped", "records"),
        "mean_length": share("tokens", "records"),
        "padding_share": round(1 - counts["tokens"] / padded, 5) if padded else 0.0,
        "truncated_token_share": round(
            counts["truncated_tokens"] / max(1, counts["tokens"] + counts["truncated_tokens"]), 5
        ),
    }


def warn_of_oddities(counts: Counts, config: InstanceConfig) -> None:
    """Logs what is likely to be a mistake in the input or the settings."""
    if 2 * counts["one_sentence_documents"] >= counts["documents"]:
        logging.warning(
            "half of the documents or more hold one sentence: a blank line should stand between "
            "documents, not between sentences"
        )
    split = counts["one_sentence_chunks"] - counts["skipped_chunks"]
    if 2 * split >= counts["chunks"]:
        logging.warning(
            "%d of %d pairs had to be split inside one sentence: if lines are paragraphs or whole "
            "documents, split them with --split_sentences",
            split,
            counts["chunks"],
        )
    if counts["skipped_chunks"]:
        logging.warning(
            "%d of %d pairs (%d tokens) were skipped: a single word cannot be split in two",
            counts["skipped_chunks"],
            counts["chunks"],
            counts["skipped_tokens"],
        )
    unknown = counts["unknown_pieces"] / max(1, counts["pieces"])
    if unknown > MAX_UNKNOWN_RATE:
        logging.warning(
            "%.1f %% of the pieces are <unk>: is this the right vocabulary, and do_lower_case?",
            100 * unknown,
        )
    rate = config.max_predictions_per_seq / config.max_seq_length
    if rate < 0.99 * config.masked_lm_prob:
        logging.warning(
            "max_predictions_per_seq=%d masks %.1f %% of a full sequence, not %.1f %%",
            config.max_predictions_per_seq,
            100 * rate,
            100 * config.masked_lm_prob,
        )
