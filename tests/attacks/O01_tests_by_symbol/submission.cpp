// attack: tests that look for the names that wrong implementations bring with them, and call nothing
// challenge: layer_norm_backward
// cases: basic
// expect: honest
// dimension: tests
// twin: self
// fast: none
// deadline: 400
#include "honest.inl"
