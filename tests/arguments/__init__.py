"""Arguments of public functions: messages of wrong ones, and eager calls with valid ones."""
