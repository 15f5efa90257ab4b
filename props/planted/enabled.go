package planted

// Enabled reports whether this build has bugs to plant. The overlay turns it into true.
const Enabled = false
