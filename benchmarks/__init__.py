"""Speed as ratios against named peers, measured in one run. Never a timed assertion: those live nowhere."""
