"""What an operator does with a dead letter, beside replaying it: edit, discard, purge."""
