"""Floor 4: what a sandbox is and how it changes. Every change is one step: drafted, checked, recorded, folded."""
