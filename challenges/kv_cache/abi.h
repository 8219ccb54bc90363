/* A key/value cache for the attention layers of a decoder, behind an opaque handle. C11 and C++20.
 *
 * One handle serves n_layers layers and up to max_seqs sequences ("slots"). Appends are per layer:
 * while a model runs, one layer of a sequence may be longer than another. Keys are stored as they
 * are given; a rotary embedding is the caller's affair. All arrays are host memory, packed, of the
 * handle's dtype (ASSAY_F32 or ASSAY_BF16) unless said otherwise, and only as aligned as one
 * element. Nothing that a call is given may be referred to after the call returns, except the
 * context, which outlives the handle.
 *
 * On a device: k, v, q, o and lse are device memory, and so is the cache's storage of keys and
 * values (ctx->alloc, space 1); slots, cu, parent, configurations and single results are host
 * memory.
 *
 * Batches are ragged: n entries; entry b stands for slot slots[b] and for the rows cu[b] ..
 * cu[b+1]-1 of the arrays, T = cu[n] rows in all; cu[0] = 0. Slots come in any order, a subset of
 * those that exist. An entry may have no rows.
 *
 * Statuses. ASSAY_EINVAL: arguments that can never be right (NULL with rows to process, negative
 * sizes, a decreasing cu, a layer that does not exist, the same slot twice in a batch, bad ranges).
 * ASSAY_ESTATE: a slot that does not exist now, a truncation to more tokens than there are. (The
 * check takes either of these two where either is due.) ASSAY_ECAP: beyond max_seqs, max_tokens
 * or max_len. ASSAY_ENOMEM: ctx->alloc gave NULL. A call that fails changes neither the cache nor
 * any output, and leaves no more memory allocated than there was. */
#ifndef ASSAY_KV_CACHE_ABI_H
#define ASSAY_KV_CACHE_ABI_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvc kvc;

typedef struct {
  uint32_t size;      /* sizeof(kvc_config) */
  int32_t dtype;      /* of k, v, q and o: ASSAY_F32 or ASSAY_BF16 */
  int32_t n_layers;   /* >= 1 */
  int32_t n_q, n_kv;  /* query and key heads, n_q a multiple of n_kv */
  int32_t D;          /* elements of a query or key head, >= 1 */
  int32_t max_seqs;   /* slots are 0 .. max_seqs-1 */
  int64_t max_tokens; /* bound, for each layer, on the sum of the lengths of all slots; what a fork
                         shares counts for each of its slots */
  int64_t max_len;    /* bound on the length of one slot */
  int32_t window;     /* >= 1: keys that a query sees, its own included; -1: all before it */
  int32_t quant;      /* 0: stored as given; 8 or 4: bits of a stored element */
  int32_t Dv;         /* elements of a value head; 0: as D */
  int32_t sinks;      /* with a window: the first `sinks` keys of a slot stay visible to all */
} kvc_config;

/* A configuration that is well formed but not supported is ASSAY_ENOTSUP (window, quant, Dv, sinks
 * and bf16 are optional). *out is written only on success. All storage of keys and values comes
 * from ctx->alloc, and is allocated as it is needed rather than for max_tokens at once. */
int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out);

/* Frees everything. NULL is allowed. */
void kvc_destroy(kvc* cache);

/* A new empty slot, the lengths of all its layers 0. Ids of freed slots may be given again. */
int kvc_seq_new(kvc* cache, int32_t* slot);
int kvc_seq_free(kvc* cache, int32_t slot);

/* Forgets the tokens from new_len on, in every layer that is longer. new_len beyond the longest
 * layer is ASSAY_ESTATE. */
int kvc_truncate(kvc* cache, int32_t slot, int64_t new_len);

/* A new slot with the same history as src in every layer. What happens to either of the two later
 * is invisible to the other, the freeing of either included. Storage is shared until they differ.
 */
int kvc_fork(kvc* cache, int32_t src, int32_t* dst);

/* Adds rows to one layer of each entry's slot. k: [T, n_kv, D], v: [T, n_kv, Dv]. All or nothing.
 */
int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots, const int64_t* cu,
               const void* k, const void* v);

/* Attention of q [T, n_q, D] to what is cached in the layer, the rows' own keys included: the
 * caller appends first. With nb = cu[b+1]-cu[b] rows and L cached tokens, row i stands at position
 * p = L - nb + i and sees the keys j with j <= p, and j > p - window or j < sinks if there is a
 * window. Query head h reads key head h / (n_q / n_kv). o [T, n_q, Dv] is the softmax over the
 * visible keys of scale * q.k, times v; lse [T, n_q], fp32, the logarithm of the sum of
 * exponentials, or NULL. A row that sees nothing (p < 0) has o = 0 and lse = -inf. Keys, values,
 * queries and scores are finite. */
int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots, const int64_t* cu,
               const void* q, float scale, void* o, float* lse);

/* Tokens in a layer of a slot; -1 if there is no such layer or slot. */
int64_t kvc_len(kvc* cache, int32_t layer, int32_t slot);

/* reserved: bytes that the handle holds from ctx->alloc at this moment, exactly. live: those of
 * them that hold tokens of some slot; a page in use may count as a whole, one that is shared counts
 * once. No token anywhere: live = 0. Neither pointer is NULL. */
int kvc_bytes(kvc* cache, int64_t* live, int64_t* reserved);

/* Copies the tokens t0 .. t1-1 of a layer of a slot: k [t1-t0, n_kv, D], v [t1-t0, n_kv, Dv]. Bit
 * for bit what was appended, unless quantised. With a window only tokens that the next row could
 * see are asked for. */
int kvc_read(kvc* cache, int32_t layer, int32_t slot, int64_t t0, int64_t t1, void* k, void* v);

/* With a window, tokens that no row can see any more need not be kept, and memory must not grow
 * with the length. Callers keep to this: a batch attends to no more rows of a slot than it appended
 * last, or than KVC_ROLLBACK; and a truncation leaves a length no more than KVC_ROLLBACK below the
 * longest that the layer ever had, or it leaves nothing; then that begins anew. */
enum { KVC_ROLLBACK = 64 };

/* --- optional: a submission that lacks one of these functions loses its capability only --- */

/* Attention of the nodes of draft trees, one tree for each entry. Its nodes are the entry's rows;
 * their keys are the last nb = cu[b+1]-cu[b] tokens of the layer, appended before in the order of
 * the nodes; the P = L - nb tokens before them are the prefix. parent [T]: -1 for a child of the
 * prefix, else the index of the parent within its own entry, smaller than the node's own. A node
 * sees the prefix, its ancestors and itself, and no other node. With a window the positions count:
 * that of a prefix token is its index, that of a node P plus the number of its ancestors; a key at
 * position s is visible from p if s > p - window or s < sinks. All else is as in kvc_attend.
 * ASSAY_EINVAL also: a parent < -1 or >= its node's index, parent NULL with rows to process, an
 * entry with more rows than tokens. */
int kvc_attend_tree(kvc* cache, int32_t layer, int32_t n, const int32_t* slots, const int64_t* cu,
                    const int32_t* parent, const void* q, float scale, void* o, float* lse);

/* kvc_attend for slots that begin alike: the first `shared` tokens of the layer are the common
 * history of forks, the same for all entries (the caller's promise, not to be checked; it may end
 * inside a page, and slots may have more in common). The result is that of kvc_attend. What it is
 * for: the shared keys and values are read once for the rows of all entries together. ASSAY_EINVAL
 * also: shared < 0 or beyond the length of an entry's layer, whether the entry has rows or not. */
int kvc_attend_shared(kvc* cache, int32_t layer, int32_t n, const int32_t* slots, const int64_t* cu,
                      int64_t shared, const void* q, float scale, void* o, float* lse);

/* Gives back what freed slots, truncations and growth have left unused: afterwards, reserved is at
 * most live * 5/4 + KVC_LEFTOVER, and live no more than before. Tokens may be moved; what can be
 * read and attended to stays as it is, bit for bit in kvc_read, and forks go on sharing.
 * ASSAY_ENOMEM: no memory to move things with; all is as before. */
int kvc_defragment(kvc* cache);
enum { KVC_LEFTOVER = 256 * 1024 }; /* bytes */

#ifdef __cplusplus
}
#endif

#endif
