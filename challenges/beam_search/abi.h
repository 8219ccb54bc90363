/* beam_search: beam search over a language model that the caller owns. Plain C; conventions as in
 * assay/abi.h.
 *
 * For each of B items the search keeps an ordered list of at most K beams. A beam is a sequence of
 * generated tokens with acc, the sum of their log-probabilities, and len, their number; both count
 * the eos token, neither counts the prompt. A beam whose last token is eos is finished: it keeps
 * its acc, len and score for good and is never extended. Others are active. The list starts as ONE
 * active beam without tokens.
 *
 * A step, while the item has an active beam and fewer than max_new steps were made:
 *   pool = the finished beams of the list, and for every active beam p and every token v whose
 *          log-probability after p is above -inf, the beam p + v
 *   list = the best K of the pool, best first (fewer if the pool is smaller)
 * Best means the largest score (rank_mode 0) or the largest acc (rank_mode 1); equal beams stand in
 * this order: first the finished beams of the old list in its order, then p + v by the place of p
 * in the old list, then by v. An empty pool leaves an empty list.
 *
 *   score = acc / len^alpha             penalty 0, and 0 for len = 0
 *   score = acc / ((5 + len) / 6)^alpha penalty 1
 *
 * The answer is the list ordered by score, largest first. Equal beams: finished before active,
 * finished ones by the step at which they finished and then by their place in that step's list,
 * active ones by their place in the list. With keep_finished the finished beams that the search
 * dropped from its list on the way take part as well, and the best K of all are the answer.
 *
 * All sums, penalties and comparisons are in double.
 *
 * On a device: everything is host memory but `out` of step, which may be either. That holds for
 * beam_search_with_options too. */
#ifndef BEAM_SEARCH_ABI_H
#define BEAM_SEARCH_ABI_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BS_LOG_PROBS = 0, BS_LOGITS = 1 };

/* The model. A row is one hypothesis to extend: the item, and either parent -1, which is the item's
 * prompt (token is ignored), or the state of an earlier row of the same item and the token appended
 * to it. step evaluates n >= 1 rows: out [n, V] is what follows each, state [n] names each for
 * later steps; a state is 0 or more and says nothing about its row.
 *
 * Only pairs of state and token that exist may be asked for: the token in 0 .. V-1, not eos, and of
 * a finite log-probability. No pair twice. Anything else is an error of the search, and so are more
 * than n = B*K rows. A code other than ASSAY_OK ends the search with that code, outputs untouched.
 *
 * One call a step for all items together, and a row for each active beam, no more: calls and rows
 * are counted.
 *
 * BS_LOG_PROBS: out is log-probabilities, <= 0, -inf included. They need not add up to 1.
 * BS_LOGITS: out is logits x, -inf included; the log-probability is x - log(sum exp(x)),
 * computed in double; all -inf if every x is.
 * Neither holds NaN or +inf. */
typedef struct {
  uint32_t size; /* sizeof(assay_lm) */
  int32_t V;     /* vocabulary, >= 1 */
  int32_t kind;  /* BS_LOG_PROBS or BS_LOGITS */
  void* user;    /* first argument of step */
  int (*step)(void* user, assay_ctx*, int32_t n, const int32_t* item, const int64_t* parent,
              const int32_t* token, float* out, int64_t* state);
} assay_lm;

typedef struct {
  uint32_t size;         /* sizeof(bs_params) */
  int32_t B;             /* items, >= 0 */
  int32_t K;             /* beams of an item, >= 1; may exceed V */
  int32_t max_new;       /* most tokens of a beam, >= 0 */
  int32_t eos;           /* -1: none; else < V */
  double alpha;          /* any finite value, negative ones included */
  int32_t rank_mode;     /* 0; 1 optional */
  int32_t keep_finished; /* 0; 1 optional */
  /* The model knows the prompts; they do not affect the search. NULL for either array of B > 0
   * items is ASSAY_EINVAL; the prompts themselves need not be read. */
  const int32_t* prompt_len;    /* [B], each >= 0 */
  const int32_t* const* prompt; /* [B] */
  int32_t penalty;              /* 0; 1 optional */
  int32_t min_new;              /* 0; optional, >= 0: no eos in the pool that makes len < min_new */
} bs_params;

/* seq [B, K, max_new], -1 behind the end of a beam and for all of a beam that does not exist; len,
 * acc, score, finished (0 or 1) [B, K], written for the n_out[b] <= K beams that exist; n_out [B].
 *
 * max_new = 0 gives one beam without tokens an item (one for each of its groups), acc and score 0,
 * and no call of the model.
 * ASSAY_EINVAL, outputs untouched: a wrong size, a value outside its range, NULL for lm, step or an
 * array that should hold something. ASSAY_ENOTSUP: an optional feature that is left out.
 *
 * With keep_finished an item may be given up as soon as no continuation can change its answer:
 * log-probabilities are not positive (where logits give one a rounding above 0, that decides
 * nothing). That saves calls (optional). */
int beam_search(assay_ctx*, const bs_params*, const assay_lm*, int32_t* seq, int32_t* len,
                double* acc, double* score, int32_t* finished, int32_t* n_out);

/* What the optional entry point adds to the search. Each field works alone and with the others;
 * one that is left out is ASSAY_ENOTSUP where it is set. */
typedef struct {
  uint32_t size; /* sizeof(bs_options) */

  /* The elements of step's out: ASSAY_F32, or ASSAY_BF16 or ASSAY_F16. Of those two, out is really
   * an array uint16_t [n, V] of their bit patterns, cast. Their values are exact: what is formed
   * from them is formed in double. */
  int32_t row_dtype;

  /* A token that may not follow p is not in the pool. The log-sum-exp of logits is over the whole
   * row all the same. Both rules look at generated tokens only, never at the prompt, and at eos
   * like at any other token.
   * no_repeat_ngram: 0 none; n >= 1: v may not follow p if the last n tokens of p + v stand
   * somewhere else in p + v already, overlaps included.
   * bad: v may not follow p if p + v ends with one of the n_bad >= 0 sequences; bad_len [n_bad],
   * each >= 1; bad [n_bad], each of tokens 0 .. V-1. */
  int32_t no_repeat_ngram;
  int32_t n_bad;
  const int32_t* bad_len;
  const int32_t* const* bad;

  /* Diverse beam search (Vijayakumar et al. 2016) with Hamming diversity. groups >= 1 divides K:
   * the item has that many lists of at most K / groups beams each, and each starts as one empty
   * beam. A step extends them in turn, each from its own pool. In the pool of a list, p + v is
   * compared as if its acc were acc - diversity * n, where n counts the beams that the lists before
   * it extended by v in this very step, eos included; a finished beam is compared as it is. What is
   * subtracted selects and is forgotten: acc and score are always those of the model.
   * Where the end of the search speaks of the list, it is these lists one after the other.
   * Lists may hold the same text. Each asks for rows of its own, so the start of an item may be
   * asked for `groups` times. */
  int32_t groups;
  double diversity; /* finite, >= 0 */

  /* Patience (Kasai et al. 2022): 0 none; else finite and positive, and keep_finished must be 1.
   * The item stops after the step in which the number of its beams that ever became finished, the
   * dropped ones included, reaches patience * K. Of an item where that number is reached, active
   * beams are not part of the answer. */
  double patience;
} bs_options;

/* Optional: beam_search with these options. ASSAY_EINVAL, outputs untouched, for NULL or a value
 * outside its range as well. */
int beam_search_with_options(assay_ctx*, const bs_params*, const bs_options*, const assay_lm*,
                             int32_t* seq, int32_t* len, double* acc, double* score,
                             int32_t* finished, int32_t* n_out);

#ifdef __cplusplus
}
#endif

#endif
