"""Runs an entry script: user errors become one line on stderr and exit status 2.

Import this module before tensorflow: it silences the C++ start-up noise unless
TF_CPP_MIN_LOG_LEVEL says otherwise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from flags import missing_package  # noqa: F401  before any package that may be missing

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from absl import app, flags, logging

from albert_tf.errors import RunError, UserError

EXIT_FAILED = 1
EXIT_UNUSABLE_INPUT = 2

MACHINE_ERRORS = (
    OSError,
    MemoryError,
    tf.errors.ResourceExhaustedError,
    tf.errors.NotFoundError,
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.DataLossError,
)
"""A full disk, a lost file or device; other errors of TensorFlow are ours, and show their trace."""


def _fail(message: str, status: int) -> None:
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(status)


def _parse_flags(argv: Sequence[str]) -> list[str]:
    try:
        rest = flags.FLAGS(list(argv))
    except flags.Error as error:
        _fail(f"unusable flag: {' '.join(str(error).split())}: see --help", EXIT_UNUSABLE_INPUT)
    except SystemExit:  # absl leaves with 1 after --help, which is no failure.
        sys.exit(0)
    if len(rest) > 1:
        _fail(
            f"unexpected argument: {rest[1]}: every setting is a --flag=value; quote globs",
            EXIT_UNUSABLE_INPUT,
        )
    return rest


def run(main: Callable[[], None], required: Sequence[str] = ()) -> None:
    """Parses flags, runs `main()` and exits: 0 done, 1 failed, 2 unusable flags or input.

    Args:
      main: takes no arguments; raises UserError for what the user can mend.
      required: names of flags that must be given a value.
    """

    def checked_main(_: Sequence[str]) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # whatever the locale
        logging.use_absl_handler()
        logging.set_verbosity(logging.INFO)
        try:
            for name in required:
                if not flags.FLAGS[name].value:
                    raise UserError("is required", f"--{name}", "give it a value; see --help")
            main()
        except UserError as error:
            _fail(str(error), EXIT_UNUSABLE_INPUT)
        except RunError as error:
            _fail(str(error), EXIT_FAILED)
        except (
            tf.errors.PermissionDeniedError,
            tf.errors.UnimplementedError,  # a scheme that no file system is registered for
            PermissionError,
        ) as error:
            reason = getattr(error, "message", None) or str(error)
            _fail(
                f"cannot be accessed: {reason.splitlines()[0]}: check path and permissions",
                EXIT_UNUSABLE_INPUT,
            )
        except MACHINE_ERRORS as error:
            reason = getattr(error, "message", None) or str(error) or "no memory left"
            _fail(
                f"{type(error).__name__}: {' '.join(reason.split())}: mend the cause and give the "
                "same command again",
                EXIT_FAILED,
            )
        except KeyboardInterrupt:
            _fail("interrupted: keyboard: give the same command again", 130)

    _show_in_help()
    app.run(checked_main, flags_parser=_parse_flags)


def _show_in_help() -> None:
    """Makes --help list the flags of our modules, not only those of the script itself."""
    for module in [name for name in sys.modules if name.startswith("flags.")]:
        for flag in flags.FLAGS.get_key_flags_for_module(module):
            flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)
