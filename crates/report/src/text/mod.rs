//! Text for people: the verdict first.
