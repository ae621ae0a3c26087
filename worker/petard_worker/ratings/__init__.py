"""Pure rating mathematics: numbers in, numbers out."""
