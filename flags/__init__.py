"""Command-line flags by concern; each module turns its flags into frozen dataclasses."""
