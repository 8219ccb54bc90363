// Removes secrets from text that is stored or shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr std::string_view kRedacted = "[secret removed]";

// Whether the name of this variable suggests a secret: it contains KEY, TOKEN, SECRET, PASSWORD,
// PASSWD, PASSPHRASE or CREDENTIAL.
bool names_a_secret(std::string_view variable);

// The values of such variables in this process's environment, longest first. Values under 8 bytes
// are left out: they occur everywhere in ordinary text.
std::vector<std::string> secrets_of_environment();

// Replaces secrets with kRedacted: the given values, and whatever looks like a secret: keys of
// OpenAI and Anthropic (sk-), GitHub, GitLab, AWS, Google, Slack, Hugging Face and npm, JSON web
// tokens, what follows "Bearer", and private key blocks.
class Redactor {
 public:
  explicit Redactor(std::vector<std::string> values = {});

  std::string redacted(std::string_view text) const;

  // The same for a text that comes in pieces, cut anywhere. Returns what is certain so far. Never
  // returns any part of a secret of up to kLongestSecret bytes, nor of a private key of any length.
  std::string feed(std::string_view piece);
  std::string finish();  // the rest

  static constexpr std::size_t kLongestSecret = 16384;

 private:
  // Length of the secret that begins at `at`, or 0.
  std::size_t secret_at(std::string_view text, std::size_t at) const;
  // Redacts secrets that begin before `limit`; returns where it stopped.
  std::size_t redact_until(std::string_view text, std::size_t limit, std::string& out) const;

  std::vector<std::string> values_;
  bool first_bytes_[256] = {};
  std::string pending_;
  char before_ = '\n';   // the byte before pending_
  bool in_key_ = false;  // within a private key block
};

}  // namespace assay
