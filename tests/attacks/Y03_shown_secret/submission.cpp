// attack: has the compiler print a text that its log must not show
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// hidden: what nobody shall read
// witness: compiler #error
// canary: log
#error "what nobody shall read"
