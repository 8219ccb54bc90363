// attack: tests that judge an implementation by its code, its addresses or its time, and not by its answers
// challenge: layer_norm_backward
// cases: basic
// expect: honest
// dimension: tests
// twin: self
// fast: none
// deadline: 400
// variants: code addresses time
#include "honest.inl"
