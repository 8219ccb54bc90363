#include "util/redact.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace assay {
namespace {

constexpr std::size_t kShortestValue = 8;
constexpr std::string_view kKeyBegin = "-----BEGIN ", kKeyEnd = "-----END ";
constexpr std::string_view kKeyKind = "PRIVATE KEY-----";

bool is_alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_token(char c) { return is_alphanumeric(c) || c == '_' || c == '-'; }
bool is_credential(char c) {
  return is_token(c) || std::string_view(".~+/=").find(c) != std::string_view::npos;
}

struct Form {
  std::string_view prefix;
  std::size_t least;  // bytes after it
  bool (*is_part)(char);
};

// As the services document them, or as observed.
constexpr std::array kForms{
    Form{"sk-", 16, is_token},          Form{"ghp_", 20, is_alphanumeric},
    Form{"gho_", 20, is_alphanumeric},  Form{"ghu_", 20, is_alphanumeric},
    Form{"ghs_", 20, is_alphanumeric},  Form{"ghr_", 20, is_alphanumeric},
    Form{"github_pat_", 20, is_token},  Form{"glpat-", 16, is_token},
    Form{"AKIA", 16, is_alphanumeric},  Form{"ASIA", 16, is_alphanumeric},
    Form{"AIza", 30, is_token},         Form{"xoxa-", 10, is_token},
    Form{"xoxb-", 10, is_token},        Form{"xoxp-", 10, is_token},
    Form{"xoxr-", 10, is_token},        Form{"xoxs-", 10, is_token},
    Form{"hf_", 20, is_alphanumeric},   Form{"npm_", 30, is_alphanumeric},
    Form{"Bearer ", 16, is_credential}, Form{"bearer ", 16, is_credential},
};

std::size_t run_length(std::string_view text, std::size_t at, bool (*is_part)(char)) {
  std::size_t end = at;
  while (end < text.size() && is_part(text[end])) ++end;
  return end - at;
}

std::size_t form_at(std::string_view text, std::size_t at) {
  for (const Form& form : kForms) {
    if (!text.substr(at).starts_with(form.prefix)) continue;
    const std::size_t rest = run_length(text, at + form.prefix.size(), form.is_part);
    if (rest >= form.least) return form.prefix.size() + rest;
  }
  return 0;
}

// Three dot-separated parts of base64url, the first of them a JSON object.
std::size_t web_token_at(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("eyJ")) return 0;
  std::size_t end = at;
  for (int part = 0; part < 3; ++part) {
    if (part > 0 && (end >= text.size() || text[end++] != '.')) return 0;
    const std::size_t n = run_length(text, end, is_token);
    if (n < 4) return 0;
    end += n;
  }
  return end - at;
}

// Whether a line "-----BEGIN ... PRIVATE KEY-----" begins there.
bool key_begins_at(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with(kKeyBegin)) return false;
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  return line.find(kKeyKind) != std::string_view::npos;
}

// Where a private key block ends that continues at `from`; npos: not within `text`.
std::size_t key_end(std::string_view text, std::size_t from) {
  const std::size_t mark = text.find(kKeyEnd, from);
  if (mark == std::string_view::npos) return mark;
  const std::size_t dashes = text.find("-----", mark + kKeyEnd.size());
  return dashes == std::string_view::npos ? dashes : dashes + 5;
}

}  // namespace

bool names_a_secret(std::string_view variable) {
  std::string upper(variable);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::array kParts{"KEY",    "TOKEN",      "SECRET",    "PASSWORD",
                              "PASSWD", "PASSPHRASE", "CREDENTIAL"};
  return std::ranges::any_of(
      kParts, [&](const char* part) { return upper.find(part) != std::string::npos; });
}

std::vector<std::string> secrets_of_environment() {
  std::vector<std::string> values;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !names_a_secret(text.substr(0, equals))) continue;
    values.emplace_back(text.substr(equals + 1));
  }
  return values;
}

Redactor::Redactor(std::vector<std::string> values) : values_(std::move(values)) {
  std::erase_if(values_, [](const std::string& v) { return v.size() < kShortestValue; });
  // Longest first, because one value may contain another.
  std::ranges::sort(values_, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& v : values_) first_bytes_[static_cast<unsigned char>(v.front())] = true;
}

std::size_t Redactor::secret_at(std::string_view text, std::size_t at) const {
  if (first_bytes_[static_cast<unsigned char>(text[at])]) {
    for (const std::string& v : values_) {
      if (text.substr(at).starts_with(v)) return v.size();
    }
  }
  const char before = at > 0 ? text[at - 1] : before_;
  if (is_token(before)) return 0;  // "task-list" is not a key
  if (const std::size_t n = form_at(text, at)) return n;
  return web_token_at(text, at);
}

std::size_t Redactor::redact_until(std::string_view text, std::size_t limit,
                                   std::string& out) const {
  std::size_t at = 0;
  while (at < limit) {
    if (text[at] == '-' && key_begins_at(text, at)) return at;
    if (const std::size_t n = secret_at(text, at)) {
      out += kRedacted;
      at += n;
    } else {
      out += text[at++];
    }
  }
  return at;
}

std::string Redactor::redacted(std::string_view text) const {
  Redactor whole(values_);
  std::string out = whole.feed(text);
  return out + whole.finish();
}

std::string Redactor::feed(std::string_view piece) {
  pending_ += piece;
  std::string out;
  for (;;) {
    if (in_key_) {
      const std::size_t end = key_end(pending_, 0);
      if (end == std::string::npos) {
        // The end marker may be cut off.
        const std::size_t mark = pending_.find(kKeyEnd);
        const std::size_t keep = mark != std::string::npos
                                     ? pending_.size() - mark
                                     : std::min(pending_.size(), kKeyEnd.size());
        pending_.erase(0, pending_.size() - std::min(keep, kLongestSecret));
        return out;
      }
      before_ = '-';
      pending_.erase(0, end);
      in_key_ = false;
    }
    if (pending_.size() <= 2 * kLongestSecret) return out;
    const std::size_t stop = redact_until(pending_, pending_.size() - kLongestSecret, out);
    const bool key = key_begins_at(pending_, stop);
    if (stop > 0) before_ = pending_[stop - 1];
    if (key) out += kRedacted;
    pending_.erase(0, stop);
    in_key_ = key;
  }
}

std::string Redactor::finish() {
  std::string out;
  while (!pending_.empty()) {
    if (in_key_) {
      const std::size_t end = key_end(pending_, 0);
      in_key_ = false;
      before_ = '-';
      pending_.erase(0, end);  // all of it if there is no end
      continue;
    }
    const std::size_t stop = redact_until(pending_, pending_.size(), out);
    if (stop < pending_.size()) {
      out += kRedacted;
      in_key_ = true;
    }
    if (stop > 0) before_ = pending_[stop - 1];
    pending_.erase(0, stop);
  }
  in_key_ = false;
  before_ = '\n';
  return out;
}

}  // namespace assay
