// attack: none: the honest cell that is graded after each attack, to show that it did not change
// challenge: fused_softmax_topk
// cases: basic rows_9 ties_all
// expect: honest
#include "honest.inl"
