// attack: tests in CUDA that read the PTX in their process, and judge an implementation by its names or its length
// challenge: layer_norm_backward
// cases: basic
// expect: honest
// dimension: tests
// twin: self
// fast: none
// deadline: 400
// variants: names lengths
#include "honest.inl"
