// Compiles the scripts of spec.json that are text.
//
// Statements end with a semicolon. Sequences have names. `s:n` is a batch entry of n rows of
// sequence s. `#5` is the literal slot 5, for calls that must fail.
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
//   read any                          a token of each sequence, drawn by the seed
//   allow 0                           no more memory for the cache; allow -1: unlimited;
//                                     allow 5000: that many bytes, too few for the next append
//   repeat 20 { ... } | phase         phase: the next phase of the case begins
// `2.` before a verb: on the second cache. `verb!flag!flag`: see kFlags. The model works out what a
// call must return; scripts never say it.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "assay/random.h"
#include "script_builder.h"

namespace assay::kv_cache {
namespace {

using nlohmann::json;

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

class Parser {
 public:
  Parser(ScriptBuilder& builder, std::map<std::string, std::int64_t>& names, std::uint64_t seed)
      : builder_(builder), names_(names), random_(seed), reads_(substream(seed, 1)) {}

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

  // Half of the nodes hang on one of the last four, so that trees become deep as well as wide.
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
    if (v.name == "bytes") {
      builder_.bytes(c, v.flags);
      if ((v.flags & (kLimit | kMetric)) != 0) builder_.read_any(c, reads_);
      return;
    }
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
    } else if (v.name == "read" && w.at(0) == "any") {
      builder_.read_any(c, reads_);
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

  ScriptBuilder& builder_;
  std::map<std::string, std::int64_t>& names_;
  Random random_;  // of trees
  Random reads_;   // of what is read where memory is counted
};

std::string text_of(const json& script) {
  if (script.is_string()) return script;
  std::string text;
  for (const json& line : script) text += line.get<std::string>() + ";";
  return text;
}

std::int64_t count_names(const std::string& text) {
  // Every name is a word or the start of one, so the number of words is an upper bound.
  std::istringstream in(text);
  std::int64_t words = 0;
  for (std::string w; in >> w;) ++words;
  return words;
}

}  // namespace

Script compile_text(const CaseSpec& spec, std::uint64_t seed) {
  const std::string text = text_of(spec.params.at("script"));
  ScriptBuilder builder(spec, count_names(text));
  std::map<std::string, std::int64_t> names;
  Parser(builder, names, seed).run(text);
  return builder.take();
}

}  // namespace assay::kv_cache
