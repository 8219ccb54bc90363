/* dflash_verify: verification of a draft tree in speculative decoding. Plain C; conventions as in
 * assay/abi.h.
 *
 * Batches of trees: item b of B owns the nodes cu[b] .. cu[b+1]-1 of the flat arrays, n_b in all,
 * Ntot = cu[B] over the batch. Node indices are relative to their item. parent[i] is -1 for a root
 * (a child of the prefix) or the index of the parent, which must be smaller than i. The prefix of
 * item b has P[b] >= 1 tokens. The depth of a root is 1, of another node its parent's plus 1.
 *
 * An invalid tree is a parent < -1 or >= its node's index, or a cu that does not start at 0 or
 * decreases. ASSAY_EINVAL everywhere, outputs untouched: an invalid tree, B < 0, P[b] < 1, a NULL
 * array that should hold something, or a parameter outside its range. n_b = 0 and B = 0 are legal.
 *
 * On a device: logits, distributions, uniform, q, o, lse, caches, and what dv_mask and dv_full_mask
 * write are device memory; trees, lengths, tokens, arrays of pointers, structs, and what dv_accept
 * and dv_generate write are host memory, as is what a dv_model is given and gives, but for the
 * logits of verify, which may be either. */
#ifndef DFLASH_VERIFY_ABI_H
#define DFLASH_VERIFY_ABI_H

#include "assay/abi.h"
#include "assay/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who sees whom. bits [Ntot, ldm]: bit j%64 of word j/64 of a node's row is set if j is the node or
 * one of its ancestors; all ldm words of a row are written. 64*ldm >= every n_b, else ASSAY_EINVAL.
 * depth [Ntot], pos [Ntot] = P[b] + depth - 1, the position that the token would have in the text.
 * */
int dv_mask(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* parent,
            int64_t ldm, uint64_t* bits, int32_t* depth, int64_t* pos);

/* The whole attention mask of one item, M [P+n, P+n] of 0 and 1, M[row][column]: prefix rows are
 * causal and see no node; node rows see all of the prefix, their ancestors and themselves. */
int dv_full_mask(assay_ctx*, int64_t P, int64_t n, const int32_t* parent, uint8_t* M);

/* Attention of the tree's nodes. Of fa_params: B, Hq, Hkv, D, Dv (= D), dtype (of q, k, v, o),
 * scale and math are used; the rest is ignored. q, o [Ntot, Hq, D]; kc[b], vc[b] [P[b]+n_b, Hkv,
 * D], the prefix first, then the nodes in order; lse [Ntot, Hq] (natural logarithm) or NULL. Query
 * head h reads key head h / (Hq / Hkv). A node sees what dv_mask says plus the whole prefix; keys
 * and values that it does not see have no influence whatever they hold, NaN included. Required:
 * ASSAY_F32 with D = 32, 64, 128. Optional: ASSAY_BF16; every other D in 1 .. 256. No other D is
 * asked for. */
int dv_attention(assay_ctx*, const fa_params*, const int64_t* P, const int64_t* cu,
                 const int32_t* parent, const void* q, const void* const* kc, const void* const* vc,
                 void* o, float* lse);

enum {
  DV_GREEDY = 0,
  DV_SAMPLE_TREE = 1,   /* mode A, optional: the draft tree was chosen deterministically */
  DV_SAMPLE_IID = 2,    /* mode B, optional: children drawn independently from q */
  DV_SAMPLE_NO_REPL = 3 /* mode C, optional: children drawn from q without replacement, in order */
};

/* NULL means DV_GREEDY, for which only `mode` is read. */
typedef struct {
  uint32_t size; /* sizeof(dv_sampling) */
  int32_t mode;
  float temperature;      /* > 0; p = softmax(L / temperature) */
  int64_t u_item, u_step; /* strides of `uniform` */
  const float* uniform;   /* in [0, 1): try t of step s of item b at b*u_item + s*u_step + t */
  const float* root_q;    /* modes B, C: [B, V] distribution that the roots were drawn from */
  const float* node_q;    /* modes B, C: [Ntot, V], the children of each node */
} dv_sampling;

/* Which drafted tokens the target model confirms, and the token that follows them.
 *
 * token [Ntot]; root_logits [B, V]: the model's logits after the prefix (position P-1); node_logits
 * [Ntot, V]: those after each node. eos [B] (-1: none; a value that is no
 * token never comes) or NULL: no end of sequence; budget [B] >=
 * 0: most tokens that the item may emit, or NULL: no limit. acc_node [Ntot]: item b's accepted
 * nodes in order from cu[b] on, then -1 up to cu[b+1]; n_acc [B] how many; bonus [B] the last
 * token, or -1.
 *
 * Per item, starting at the root of all with its logits root_logits, until it stops:
 *   the budget is used up: stop without a bonus (before any logits are read);
 *   g = the token with the largest current logit, the lowest on ties;
 *   if a child of the current node holds g, the one of lowest index is accepted and emits g; if g
 *     is eos stop without a bonus, else go on from that child;
 *   else g is emitted as the bonus; stop.
 * NaN in logits that this reads: ASSAY_EINVAL; in other rows it has no influence.
 *
 * Sampling replaces the middle part at step s (s = tokens emitted so far), u(t) the uniforms and
 * draw(w, u) = the lowest index at which the running sum of w exceeds u times its total:
 *   mode A: x = draw(p, u(0)); the lowest child that holds x is accepted, else x is the bonus.
 *   mode B: for each child in order, the t-th with token x: accept it if u(t) * q(x) < p(x); else
 *     p = max(0, p - q), normalised to 1 (left alone if its sum is 0). If none of the k children is
 *     accepted, draw(p, u(k)) is the bonus.
 *   mode C: as B, and after each rejection of x: q(x) = 0, q normalised (left alone if 0).
 * ASSAY_EINVAL too: V < 1 with B > 0, a token outside 0 .. V-1, a negative budget. */
int dv_accept(assay_ctx*, int32_t B, int32_t V, const int64_t* cu, const int32_t* parent,
              const int32_t* token, const float* root_logits, const float* node_logits,
              const int32_t* eos, const int32_t* budget, const dv_sampling*, int32_t* acc_node,
              int32_t* n_acc, int32_t* bonus);

/* Moves the accepted rows of key/value caches to the end of the prefix, in place. Item b has
 * `caches` of them: kv[b*caches + c] holds P[b]+n_b rows of row_bytes. Row P[b]+j becomes what row
 * P[b]+acc_node[cu[b]+j] was, for j < n_acc[b]; rows before P[b] stay; rows after are free. The
 * accepted nodes must ascend and lie in 0 .. n_b-1, and n_acc[b] in 0 .. n_b, else ASSAY_EINVAL. */
int dv_compact(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* acc_node,
               const int32_t* n_acc, int64_t row_bytes, int32_t caches, void* const* kv);

/* A target model with a key/value cache, and the draft model beside it. Functions return ASSAY_OK
 * or the error that dv_generate must return. */
typedef struct {
  uint32_t size;     /* sizeof(dv_model) */
  int32_t V;         /* vocabulary, >= 1 */
  int32_t max_nodes; /* most nodes of a draft tree, >= 0 */
  void* user;        /* first argument of every function */

  /* Proposes *n (0 .. max_nodes) nodes that continue `prefix`; writes parent and token, which have
   * room for max_nodes. The prefix is the whole text so far. The tree is valid, its tokens too. */
  int32_t (*draft)(void* user, int64_t n_prefix, const int32_t* prefix, int32_t* n, int32_t* parent,
                   int32_t* token);

  /* One forward pass over n >= 1 new rows, appended to the cache. Row i has token[i] at position
   * pos[i] and sees all rows cached before this call and the new rows j <= i whose bit is set in
   * bits [n, ldm] (its own must be). Writes logits [n, V], those after each row. */
  int32_t (*verify)(void* user, int64_t n, const int32_t* token, const int64_t* pos, int64_t ldm,
                    const uint64_t* bits, float* logits);

  /* Keeps, of the rows appended by the last verify, those with the ascending indices keep[0..n-1],
   * and forgets the others. Without this call all are kept. After the last verify it is not needed,
   * and does no harm. */
  int32_t (*commit)(void* user, int64_t n, const int64_t* keep);
} dv_model;

typedef struct {
  uint32_t size;    /* sizeof(dv_loop) */
  int32_t eos;      /* -1: none */
  int64_t n_prompt; /* >= 1 */
  const int32_t* prompt;
  int64_t max_new; /* most tokens to emit, >= 0 */
} dv_loop;

/* The whole loop: per cycle one draft and one verify, the first of which carries the prompt. Nodes
 * that cannot be emitted any more, because max_new ends before them, need not be verified. Emits
 * what greedy decoding one token at a time would, the eos token included. out [max_new], -1 after
 * the end; *n_out the tokens emitted. No call of the model when max_new is 0. */
int dv_generate(assay_ctx*, const dv_loop*, const dv_model*, int32_t* out, int64_t* n_out);

#ifdef __cplusplus
}
#endif

#endif
