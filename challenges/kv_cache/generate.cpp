// Compiles the scripts of spec.json and draws the inputs.
//
// A script is text; statements end with a semicolon. Sequences have names; `s:n` is an entry of a
// batch, n rows of sequence s; `#5` is the literal slot 5, for calls that must fail.
//   create | create field=value       the case's configuration, or one bent to be refused
//   new a b c | free a b | fork a b   fork: from a to the new b
//   trunc a 10                        to 10 tokens
//   append a:3 b:1 | append@1 a:3     to every layer, or to layer 1 alone
//   attend a:3 b:1 | attend@1 a:3
//   step a:3 b:1                      append and attend, layer by layer
//   tree a=-1.0.0.1 b~7               attend to trees: a's nodes have these parents; 7 nodes of b
//                                     have any
//   shared 40 a:3 b:1                 attend with 40 shared tokens
//   read a 0 10 | len a | bytes | defragment | destroy
//   allow 0                           no more memory for the cache; allow -1: as much as it wants
//   repeat 20 { ... } | phase         phase: the next phase of the case begins
// `2.` before a verb: on the second cache. `verb!flag!flag`: see kFlags. What a call must give is
// worked out by the model, never written in the script.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "assay/parallel.h"
#include "assay/random.h"
#include "trusted.h"
#include "util/files.h"

namespace assay::kv_cache {
namespace {

using nlohmann::json;
using Entries = std::vector<std::pair<std::int64_t, std::int64_t>>;  // variable, rows

constexpr std::int64_t kNoLse = 1 << 20;  // a flag of scripts only

const std::map<std::string, std::int64_t> kFlags{{"nullk", kNullK},
                                                 {"nullq", kNullK},
                                                 {"nullconfig", kNullK},
                                                 {"nullv", kNullV},
                                                 {"nullo", kNullV},
                                                 {"nullout", kNullV},
                                                 {"nullslots", kNullSlots},
                                                 {"nullcu", kNullCu},
                                                 {"limit", kLimit},
                                                 {"scribble", kScribble},
                                                 {"negative", kNegativeBatch},
                                                 {"metric", kMetric},
                                                 {"nolse", kNoLse},
                                                 {"nullparent", kNullParent},
                                                 {"nullcache", kNullCache}};

const std::map<std::string, std::int64_t> kFields{
    {"size", kFieldSize},     {"dtype", kFieldDtype},       {"layers", kFieldLayers},
    {"n_q", kFieldQ},         {"n_kv", kFieldKv},           {"D", kFieldD},
    {"max_seqs", kFieldSeqs}, {"max_tokens", kFieldTokens}, {"max_len", kFieldLen},
    {"window", kFieldWindow}, {"quant", kFieldQuant},       {"Dv", kFieldDv},
    {"sinks", kFieldSinks}};

kvc_config config_of(const json& j) {
  kvc_config c{};
  c.size = sizeof(kvc_config);
  c.dtype = j.value("dtype", "f32") == "bf16" ? ASSAY_BF16 : ASSAY_F32;
  c.n_layers = j.value("layers", 1);
  c.n_q = j.value("n_q", 4);
  c.n_kv = j.value("n_kv", 2);
  c.D = j.value("D", 32);
  c.Dv = j.value("Dv", c.D);
  c.max_seqs = j.value("max_seqs", 16);
  c.max_tokens = j.value("max_tokens", std::int64_t{1} << 20);
  c.max_len = j.value("max_len", std::int64_t{1} << 20);
  c.window = j.value("window", -1);
  c.quant = j.value("quant", 0);
  c.sinks = j.value("sinks", 0);
  return c;
}

// Emits operations and keeps the model in step.
class Builder {
 public:
  Builder(const CaseSpec& spec, std::int64_t variables) : model_(begin(spec, variables)) {}

  Script take() {
    for (std::int64_t cache = 0; cache < kCaches; ++cache) {
      if (exists_[cache]) destroy(cache);
    }
    script_.params.phases = static_cast<std::int32_t>(phase_ + 1);
    return std::move(script_);
  }

  const kvc_config& config(std::int64_t cache) const { return script_.params.config[cache]; }
  const Model& model() const { return model_; }
  const Script& script() const { return script_; }

  void next_phase() {
    if (++phase_ > 2) throw Error("kv_cache: a script has at most three phases");
  }

  void create(std::int64_t cache, std::int64_t flags, std::int64_t field = 0,
              std::int64_t value = 0) {
    Op op = blank(kCreate, cache, flags);
    op.var = field;
    op.a = value;
    exists_[cache] = emit(op) == Expect::success || exists_[cache];
  }
  void destroy(std::int64_t cache) {
    emit(blank(kDestroy, cache, 0));
    exists_[cache] = false;
  }
  void open(std::int64_t cache, std::int64_t variable, std::int64_t flags) {
    Op op = blank(kNew, cache, flags);
    op.var = variable;
    emit(op);
  }
  void close(std::int64_t cache, std::int64_t variable) {
    Op op = blank(kFree, cache, 0);
    op.var = variable;
    emit(op);
  }
  void fork(std::int64_t cache, std::int64_t from, std::int64_t to, std::int64_t flags) {
    Op op = blank(kFork, cache, flags);
    op.var = from;
    op.other = to;
    emit(op);
  }
  void truncate(std::int64_t cache, std::int64_t variable, std::int64_t length) {
    Op op = blank(kTruncate, cache, 0);
    op.var = variable;
    op.a = length;
    emit(op);
  }
  void length(std::int64_t cache, std::int64_t layer, std::int64_t variable) {
    Op op = blank(kLen, cache, 0);
    op.layer = layer;
    op.var = variable;
    emit(op);
  }
  void allow(std::int64_t cache, std::int64_t bytes) {
    Op op = blank(kAllow, cache, 0);
    op.a = bytes;
    emit(op);
  }
  void bytes(std::int64_t cache, std::int64_t flags) { emit(blank(kBytes, cache, flags)); }
  void defragment(std::int64_t cache, std::int64_t flags) {
    emit(blank(kDefragment, cache, flags));
  }

  void read(std::int64_t cache, std::int64_t layer, std::int64_t variable, std::int64_t t0,
            std::int64_t t1, std::int64_t flags) {
    Op op = blank(kRead, cache, flags);
    op.layer = layer;
    op.var = variable;
    op.a = t0;
    op.b = t1;
    op.k_at = script_.read_k;
    op.v_at = script_.read_v;
    const kvc_config& c = config(cache);
    script_.read_k += std::max<std::int64_t>(t1 - t0, 0) * c.n_kv * c.D;
    script_.read_v += std::max<std::int64_t>(t1 - t0, 0) * c.n_kv * c.Dv;
    emit(op);
  }

  void append(std::int64_t cache, std::int64_t layer, const Entries& entries, std::int64_t flags) {
    Op op = batch(kAppend, cache, layer, entries, flags);
    const kvc_config& c = config(cache);
    op.k_at = script_.k[phase_];
    op.v_at = script_.v[phase_];
    script_.k[phase_] += rows_of(entries) * c.n_kv * c.D;
    script_.v[phase_] += rows_of(entries) * c.n_kv * c.Dv;
    emit(op);
  }

  void attend(std::int64_t cache, std::int64_t layer, const Entries& entries, std::int64_t flags) {
    attend(batch(kAttend, cache, layer, entries, flags & ~kNoLse), entries, flags);
  }

  void attend_shared(std::int64_t cache, std::int64_t layer, const Entries& entries,
                     std::int64_t shared, std::int64_t flags) {
    Op op = batch(kAttendShared, cache, layer, entries, flags & ~kNoLse);
    op.a = shared;
    attend(op, entries, flags);
  }

  // The parents of all entries' nodes, one entry after the other.
  void attend_tree(std::int64_t cache, std::int64_t layer, const Entries& entries,
                   const std::vector<std::int64_t>& parents, std::int64_t flags) {
    const Op op = batch(kAttendTree, cache, layer, entries, flags & ~kNoLse);
    script_.pool.insert(script_.pool.end(), parents.begin(), parents.end());
    attend(op, entries, flags);
  }

 private:
  void attend(Op op, const Entries& entries, std::int64_t flags) {
    const std::int64_t cache = op.cache;
    const kvc_config& c = config(cache);
    const std::int64_t rows = rows_of(entries);
    op.q_at = script_.q[phase_];
    op.o_at = script_.o;
    op.lse_at = (flags & kNoLse) != 0 ? -1 : script_.lse;
    script_.q[phase_] += rows * c.n_q * c.D;
    script_.o += rows * c.n_q * c.Dv;
    if (op.lse_at >= 0) script_.lse += rows * c.n_q;
    emit(op);
  }

  Params begin(const CaseSpec& spec, std::int64_t variables) {
    const json& j = spec.params;
    Params& p = script_.params;
    p.config[0] = config_of(j.value("config", json::object()));
    p.config[1] = j.contains("second") ? config_of(j.at("second")) : p.config[0];
    p.element_bytes = p.config[0].dtype == ASSAY_BF16 ? 2 : 4;
    p.scale = j.value("scale", 1.0f / std::sqrt(static_cast<float>(p.config[0].D)));
    p.variables = static_cast<std::int32_t>(variables);
    p.poison = spec.group != CaseGroup::timed;
    return p;
  }

  Op blank(Kind kind, std::int64_t cache, std::int64_t flags) const {
    Op op{};
    op.kind = kind;
    op.cache = cache;
    op.phase = phase_;
    op.flags = flags;
    op.lse_at = -1;
    return op;
  }

  // A negative count makes the sums decrease.
  Op batch(Kind kind, std::int64_t cache, std::int64_t layer, const Entries& entries,
           std::int64_t flags) {
    Op op = blank(kind, cache, flags);
    if (phase_ > 1) throw Error("kv_cache: the last of three phases has no inputs");
    op.layer = layer;
    op.n = static_cast<std::int64_t>(entries.size());
    op.pool = static_cast<std::int64_t>(script_.pool.size());
    for (const auto& [variable, rows] : entries) script_.pool.push_back(variable);
    std::int64_t sum = 0;
    script_.pool.push_back(0);
    for (const auto& [variable, rows] : entries) script_.pool.push_back(sum += rows);
    return op;
  }

  static std::int64_t rows_of(const Entries& entries) {
    std::int64_t sum = 0;
    for (const auto& [variable, rows] : entries) sum += rows;
    return sum;
  }

  Expect emit(Op op) {
    const Expect expect = model_.apply(op, script_.pool.data());
    if (expect != Expect::success) op.flags |= kMayFail;
    script_.ops.push_back(op);
    return expect;
  }

  Script script_;
  Model model_;
  std::int64_t phase_ = 0;
  bool exists_[kCaches] = {};
};

// --- scripts in text -----------------------------------------------------------------------------

class Parser {
 public:
  Parser(Builder& builder, std::map<std::string, std::int64_t>& names, std::uint64_t seed)
      : builder_(builder), names_(names), random_(seed) {}

  void run(const std::string& text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t brace = text.find('{', at), end = text.find(';', at);
      if (brace != std::string::npos && brace < end) {
        const std::size_t close = matching(text, brace);
        repeat(text.substr(at, brace - at), text.substr(brace + 1, close - brace - 1));
        at = close + 1;
      } else {
        statement(text.substr(at, end - at));
        at = end == std::string::npos ? text.size() : end + 1;
      }
    }
  }

 private:
  static std::size_t matching(const std::string& text, std::size_t brace) {
    int depth = 0;
    for (std::size_t i = brace; i < text.size(); ++i) {
      depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
      if (depth == 0) return i;
    }
    throw Error("kv_cache: a brace of a script is never closed");
  }

  void repeat(const std::string& head, const std::string& body) {
    std::istringstream in(head);
    std::string word;
    int count = 0;
    if (!(in >> word >> count) || word != "repeat") throw Error("kv_cache: bad loop: " + head);
    for (int i = 0; i < count; ++i) run(body);
  }

  std::int64_t variable(const std::string& name) {
    if (name[0] == '#') return -std::stoll(name.substr(1)) - 2;
    return names_.emplace(name, static_cast<std::int64_t>(names_.size())).first->second;
  }

  Entries entries(const std::vector<std::string>& words) {
    Entries out;
    for (const std::string& w : words) {
      const std::size_t colon = w.find(':');
      if (colon == std::string::npos) throw Error("kv_cache: not an entry: " + w);
      out.emplace_back(variable(w.substr(0, colon)), std::stoll(w.substr(colon + 1)));
    }
    return out;
  }

  struct Trees {
    Entries entries;
    std::vector<std::int64_t> parents;
  };

  Trees trees(const std::vector<std::string>& words) {
    Trees out;
    for (const std::string& w : words) {
      const std::size_t sign = w.find_first_of("=~");
      if (sign == std::string::npos) throw Error("kv_cache: not a tree: " + w);
      const std::size_t before = out.parents.size();
      if (w[sign] == '~') {
        draw_tree(std::stoll(w.substr(sign + 1)), out.parents);
      } else {
        std::istringstream in(w.substr(sign + 1));
        for (std::string parent; std::getline(in, parent, '.');)
          out.parents.push_back(std::stoll(parent));
      }
      out.entries.emplace_back(variable(w.substr(0, sign)),
                               static_cast<std::int64_t>(out.parents.size() - before));
    }
    return out;
  }

  // Half of the nodes hang on one of the last four, so that trees grow deep as well as wide.
  void draw_tree(std::int64_t nodes, std::vector<std::int64_t>& parents) {
    for (std::int64_t i = 0; i < nodes; ++i) {
      const std::int64_t back = random_.below(2) == 0
                                    ? random_.below(std::min<std::int64_t>(i + 1, 4))
                                    : random_.below(i + 1);
      parents.push_back(i - 1 - back);
    }
  }

  // 2.verb@layer!flag!flag
  struct Verb {
    std::string name;
    std::int64_t cache = 0, layer = -1, flags = 0;
  };

  static Verb verb_of(std::string word) {
    Verb v;
    if (word.starts_with("2.")) {
      v.cache = 1;
      word = word.substr(2);
    }
    for (std::size_t bang = word.rfind('!'); bang != std::string::npos; bang = word.rfind('!')) {
      v.flags |= kFlags.at(word.substr(bang + 1));
      word = word.substr(0, bang);
    }
    const std::size_t at = word.find('@');
    if (at != std::string::npos) v.layer = std::stoll(word.substr(at + 1));
    v.name = word.substr(0, at);
    return v;
  }

  template <class F>
  void each_layer(const Verb& v, F&& body) {
    if (v.layer != -1) return body(v.layer);
    for (std::int64_t l = 0; l < builder_.config(v.cache).n_layers; ++l) body(l);
  }

  void statement(const std::string& text) {
    std::istringstream in(text);
    std::string word;
    if (!(in >> word)) return;
    const Verb v = verb_of(word);
    std::vector<std::string> words;
    while (in >> word) words.push_back(word);
    carry_out(v, words);
  }

  void carry_out(const Verb& v, const std::vector<std::string>& w) {
    const std::int64_t c = v.cache;
    const auto number = [&](std::size_t i) { return std::int64_t{std::stoll(w.at(i))}; };
    if (v.name == "create") {
      if (w.empty()) return builder_.create(c, v.flags);
      const std::size_t equals = w[0].find('=');
      return builder_.create(c, v.flags, kFields.at(w[0].substr(0, equals)),
                             std::stoll(w[0].substr(equals + 1)));
    }
    if (v.name == "destroy") return builder_.destroy(c);
    if (v.name == "bytes") return builder_.bytes(c, v.flags);
    if (v.name == "allow") return builder_.allow(c, number(0));
    if (v.name == "phase") return builder_.next_phase();
    if (v.name == "defragment") return builder_.defragment(c, v.flags);
    if (v.name == "new") {
      for (const auto& s : w) builder_.open(c, variable(s), v.flags);
    } else if (v.name == "free") {
      for (const auto& s : w) builder_.close(c, variable(s));
    } else if (v.name == "fork") {
      builder_.fork(c, variable(w.at(0)), variable(w.at(1)), v.flags);
    } else if (v.name == "trunc") {
      builder_.truncate(c, variable(w.at(0)), number(1));
    } else if (v.name == "len") {
      each_layer(v, [&](std::int64_t l) { builder_.length(c, l, variable(w.at(0))); });
    } else if (v.name == "read") {
      each_layer(v, [&](std::int64_t l) {
        builder_.read(c, l, variable(w.at(0)), number(1), number(2), v.flags);
      });
    } else if (v.name == "tree") {
      const Trees t = trees(w);
      each_layer(
          v, [&](std::int64_t l) { builder_.attend_tree(c, l, t.entries, t.parents, v.flags); });
    } else if (v.name == "shared") {
      const Entries e = entries({w.begin() + 1, w.end()});
      each_layer(v, [&](std::int64_t l) { builder_.attend_shared(c, l, e, number(0), v.flags); });
    } else if (v.name == "append" || v.name == "attend" || v.name == "step") {
      const Entries e = entries(w);
      each_layer(v, [&](std::int64_t l) {
        if (v.name != "attend") builder_.append(c, l, e, v.flags);
        if (v.name != "append") builder_.attend(c, l, e, v.flags & ~kScribble);
      });
    } else {
      throw Error("kv_cache: unknown verb " + v.name);
    }
  }

  Builder& builder_;
  std::map<std::string, std::int64_t>& names_;
  Random random_;  // of trees
};

std::string text_of(const json& script) {
  if (script.is_string()) return script;
  std::string text;
  for (const json& line : script) text += line.get<std::string>() + ";";
  return text;
}

std::int64_t count_names(const std::string& text) {
  // Every name occurs as a word or at the start of one; words are an upper bound.
  std::istringstream in(text);
  std::int64_t words = 0;
  for (std::string w; in >> w;) ++words;
  return words;
}

Script compile_text(const CaseSpec& spec, std::uint64_t seed) {
  const std::string text = text_of(spec.params.at("script"));
  Builder builder(spec, count_names(text));
  std::map<std::string, std::int64_t> names;
  Parser(builder, names, seed).run(text);
  return builder.take();
}

// --- random operations ---------------------------------------------------------------------------

template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1],
              items[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
}

// A script of random operations on a few sequences, all freed at its end. What it consumes keeps to
// limits that the spec alone decides, and is padded up to them.
class RandomScript {
 public:
  RandomScript(const CaseSpec& spec, std::uint64_t seed)
      : limits_(spec.params.at("random")),
        steps_(limits_.at("steps")),
        most_(limits_.at("sequences")),
        tokens_(limits_.at("tokens")),
        rows_(limits_.at("rows")),
        defragments_(limits_.value("defragment", false)),
        builder_(spec, 2 * most_),
        random_(seed) {
    for (std::int64_t v = 0; v < 2 * most_; ++v) idle_.push_back(v);
  }

  Script run() {
    builder_.create(0, 0);
    for (std::int64_t i = 0; i < steps_; ++i) step();
    shuffle(live_, random_);
    for (const std::int64_t v : live_) builder_.close(0, v);
    builder_.bytes(0, kMetric);
    return padded(builder_.take());
  }

 private:
  Script padded(Script s) const {
    const kvc_config& c = s.params.config[0];
    // A statement takes at most two operations per layer; every batch names at most all sequences.
    const auto n_ops = static_cast<std::size_t>(2 * c.n_layers * steps_ + 3 * most_ + 3);
    s.ops.resize(n_ops, Op{});
    s.pool.resize(n_ops * static_cast<std::size_t>(2 * most_ + 1), 0);
    s.k[0] = tokens_ * c.n_kv * c.D;
    s.v[0] = tokens_ * c.n_kv * c.Dv;
    s.q[0] = rows_ * c.n_q * c.D;
    s.o = rows_ * c.n_q * c.Dv;
    s.lse = rows_ * c.n_q;
    s.read_k = tokens_ * c.n_kv * c.D;
    s.read_v = tokens_ * c.n_kv * c.Dv;
    return s;
  }

  std::int64_t any() { return live_[static_cast<std::size_t>(random_.below(std::ssize(live_)))]; }

  std::int64_t length(std::int64_t v, std::int64_t layer) const {
    return builder_.model().sequence(v).layers[static_cast<std::size_t>(layer)].length;
  }

  void step() {
    if (defragments_ && random_.below(12) == 0) return builder_.defragment(0, 0);
    const std::int64_t dice = random_.below(100);
    if (live_.empty() || dice < 8) return open();
    if (dice < 14) return close();
    if (dice < 22) return fork();
    if (dice < 31) return truncate();
    if (dice < 64) return append();
    if (dice < 86) return attend();
    if (dice < 90) return builder_.length(0, random_.below(layers()), any());
    if (dice < 95) return read();
    if (dice < 98) return builder_.bytes(0, 0);
    refused();
  }

  std::int64_t layers() const { return builder_.config(0).n_layers; }
  std::int64_t window() const { return builder_.config(0).window; }
  bool has_room() const { return std::ssize(live_) < most_; }

  std::int64_t take_idle() {
    const auto at = random_.below(std::ssize(idle_));
    std::swap(idle_[static_cast<std::size_t>(at)], idle_.back());
    const std::int64_t v = idle_.back();
    idle_.pop_back();
    live_.push_back(v);
    return v;
  }

  void open() {
    if (!has_room()) return;
    builder_.open(0, take_idle(), 0);
    drop_if_refused();
  }

  void close() {
    const auto at = static_cast<std::size_t>(random_.below(std::ssize(live_)));
    const std::int64_t v = live_[at];
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
    idle_.push_back(v);
    builder_.close(0, v);
  }

  void fork() {
    if (!has_room()) return;
    const std::int64_t from = any();
    builder_.fork(0, from, take_idle(), 0);
    drop_if_refused();
  }

  // A cache that is full gives no slot.
  void drop_if_refused() {
    if (builder_.model().alive(live_.back(), 0)) return;
    idle_.push_back(live_.back());
    live_.pop_back();
  }

  void truncate() {
    if (window() > 0)
      return;  // truncations of windowed caches are bounded; scripts in text have them
    const std::int64_t v = any(), longest = builder_.model().sequence(v).longest();
    const std::int64_t cut = random_.below(4) == 0
                                 ? random_.below(longest + 1)
                                 : random_.below(std::min<std::int64_t>(longest, 9) + 1);
    builder_.truncate(0, v, longest - cut);
  }

  std::vector<std::int64_t> some() {
    std::vector<std::int64_t> all = live_;
    shuffle(all, random_);
    all.resize(static_cast<std::size_t>(1 + random_.below(std::ssize(all))));
    return all;
  }

  void append() {
    Entries entries;
    std::int64_t sum = 0;
    for (const std::int64_t v : some()) {
      entries.emplace_back(v, random_.below(5) == 0 ? random_.below(40) : random_.below(4));
      sum += entries.back().second;
    }
    if (used_tokens_ + layers() * sum > tokens_) return;
    // Now and then only one layer, so that lengths differ.
    const std::int64_t only = random_.below(6) == 0 ? random_.below(layers()) : -1;
    for (std::int64_t l = 0; l < layers(); ++l) {
      if (only >= 0 && l != only) continue;
      used_tokens_ += sum;
      builder_.append(0, l, entries, 0);
    }
  }

  void attend() {
    Entries entries;
    std::int64_t sum = 0;
    for (const std::int64_t v : some()) {
      entries.emplace_back(v, random_.below(5) == 0 ? random_.below(9) : random_.below(2));
      sum += entries.back().second;
    }
    if (used_rows_ + sum > rows_) return;
    used_rows_ += sum;
    builder_.attend(0, random_.below(layers()), entries, 0);
  }

  void read() {
    const std::int64_t v = any(), l = random_.below(layers()), n = length(v, l);
    const std::int64_t first = window() > 0 ? std::max<std::int64_t>(0, n - window()) : 0;
    const std::int64_t t0 = first + random_.below(n - first + 1),
                       t1 = t0 + random_.below(n - t0 + 1);
    if (read_ + t1 - t0 > tokens_) return;
    read_ += t1 - t0;
    builder_.read(0, l, v, t0, t1, 0);
  }

  // Calls that must fail and leave everything as it was.
  void refused() {
    const std::int64_t v = any();
    switch (random_.below(4)) {
      case 0: return builder_.truncate(0, v, builder_.model().sequence(v).longest() + 1);
      case 1: return builder_.close(0, -builder_.config(0).max_seqs - 2);
      case 2: return builder_.append(0, random_.below(layers()), {{v, 0}, {v, 0}}, 0);
      default: return builder_.attend(0, layers(), {{v, 0}}, 0);
    }
  }

  json limits_;
  std::int64_t steps_, most_, tokens_, rows_;
  bool defragments_;  // now and then
  Builder builder_;
  Random random_;
  std::vector<std::int64_t> live_, idle_;
  std::int64_t used_tokens_ = 0, used_rows_ = 0, read_ = 0;
};

// --- a ragged batch that decodes -----------------------------------------------------------------

// n sequences with lengths high / rank, in an order that the seed decides, then some decode steps
// that visit them in ever new order.
Script compile_ragged(const CaseSpec& spec, std::uint64_t seed) {
  const json& j = spec.params.at("ragged");
  const std::int64_t n = j.at("sequences"), low = j.at("low"), high = j.at("high"),
                     steps = j.at("steps");
  Random random(seed);
  Builder builder(spec, n);
  std::vector<std::int64_t> lengths, order;
  for (std::int64_t i = 0; i < n; ++i) {
    lengths.push_back(std::max(low, high / (i + 1)));
    order.push_back(i);
  }
  shuffle(lengths, random);
  const auto batch = [&](const auto& rows_of) {
    Entries entries;
    shuffle(order, random);
    for (const std::int64_t v : order) entries.emplace_back(v, rows_of(v));
    return entries;
  };
  builder.create(0, 0);
  for (std::int64_t i = 0; i < n; ++i) builder.open(0, i, 0);
  builder.append(0, 0, batch([&](std::int64_t v) { return lengths[static_cast<std::size_t>(v)]; }),
                 0);
  builder.next_phase();
  for (std::int64_t i = 0; i < steps; ++i) {
    const Entries one = batch([](std::int64_t) { return 1; });
    builder.append(0, 0, one, 0);
    builder.attend(0, 0, one, 0);
  }
  builder.next_phase();
  builder.bytes(0, kMetric);
  return builder.take();
}

// --- data ----------------------------------------------------------------------------------------

void fill_floats(const BufferView& buffer, std::int32_t element_bytes, std::uint64_t seed) {
  if (element_bytes == 2) return fill_normal_bf16(buffer.span<std::uint16_t>(), seed);
  fill_normal(buffer.span<float>(), seed);
}

// A few channels of every key head are large, one in each part of the head, as rotary models have
// them; their queries are small in return.
void add_outliers(const json& j, const kvc_config& c, std::uint64_t seed, const BufferView& k,
                  const BufferView& q) {
  const std::int64_t channels = j.at("channels"), D = c.D, part = D / channels;
  const float factor = j.at("factor"), reduced = j.at("query");
  Random random(seed);
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < channels; ++i) at.push_back(i * part + random.below(part));
  const auto scale = [&](std::span<float> x, float by) {
    for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(D)) {
      for (const std::int64_t d : at) x[row + static_cast<std::size_t>(d)] *= by;
    }
  };
  scale(k.span<float>(), factor);
  scale(q.span<float>(), reduced);
}

// Some keys point along the diagonal, as all queries do a little: their logits stand out by
// `logit`.
void add_spikes(const json& j, const Params& p, const BufferView& k, const BufferView& q) {
  const kvc_config& c = p.config[0];
  constexpr float kTowards = 2;
  const float along = j.at("logit").get<float>() / (kTowards * static_cast<float>(c.D) * p.scale);
  for (float& x : q.span<float>()) x += kTowards;
  const std::int64_t row = std::int64_t{c.n_kv} * c.D;
  for (const json& token : j.at("tokens")) {
    float* key = k.as<float>() + token.get<std::int64_t>() * row;
    for (std::int64_t d = 0; d < row; ++d) key[d] += along;
  }
}

template <class T>
void store(const BufferView& buffer, const std::vector<T>& items) {
  std::copy(items.begin(), items.end(), buffer.as<T>());
}

}  // namespace

Script compile_script(const CaseSpec& spec, std::uint64_t seed) {
  if (spec.params.contains("random")) return RandomScript(spec, substream(seed, 0x5c)).run();
  if (spec.params.contains("ragged")) return compile_ragged(spec, substream(seed, 0x5d));
  return compile_text(spec, substream(seed, 0x5e));
}

void generate_inputs(const CaseSpec& spec, std::uint64_t seed, BufferViews buffers) {
  const Script s = compile_script(spec, seed);
  store(buffers[kOps], s.ops);
  store(buffers[kPool], s.pool);
  for (const int buffer : {kK, kV, kQ, kLaterK, kLaterV, kLaterQ}) {
    fill_floats(buffers[static_cast<std::size_t>(buffer)], s.params.element_bytes,
                substream(seed, static_cast<std::uint64_t>(buffer)));
  }
  if (spec.params.contains("outliers")) {
    add_outliers(spec.params.at("outliers"), s.params.config[0], substream(seed, 0x0f), buffers[kK],
                 buffers[kQ]);
  }
  if (spec.params.contains("spike")) {
    add_spikes(spec.params.at("spike"), s.params, buffers[kK], buffers[kQ]);
  }
}

}  // namespace assay::kv_cache
