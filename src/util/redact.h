// Secrets out of text that is kept or shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr std::string_view kRedacted = "[secret removed]";

// Whether a variable of this name holds a secret, by its name: KEY, TOKEN, SECRET, PASSWORD,
// PASSWD, PASSPHRASE or CREDENTIAL is a part of it.
bool names_a_secret(std::string_view variable);

// The values of such variables of this process's environment, the longest first. Values of fewer
// than 8 bytes are left out: as text they are everywhere.
std::vector<std::string> secrets_of_environment();

// Replaces what is a secret by kRedacted: the values given, and what has the form of one: keys of
// OpenAI and Anthropic (sk-), GitHub, GitLab, AWS, Google, Slack, Hugging Face and npm, JSON web
// tokens, what follows "Bearer", and blocks of private keys.
class Redactor {
 public:
  explicit Redactor(std::vector<std::string> values = {});

  std::string redacted(std::string_view text) const;

  // The same of a text that comes in pieces, wherever they are cut: returns what is certain so far.
  // Nothing of a secret of up to kLongestSecret bytes is returned, nor of a private key of any
  // length.
  std::string feed(std::string_view piece);
  std::string finish();  // the rest

  static constexpr std::size_t kLongestSecret = 16384;

 private:
  // Length of the secret that begins there, 0 if none does.
  std::size_t secret_at(std::string_view text, std::size_t at) const;
  // Redacts what begins before `limit`; returns where it stopped.
  std::size_t redact_until(std::string_view text, std::size_t limit, std::string& out) const;

  std::vector<std::string> values_;
  bool first_bytes_[256] = {};
  std::string pending_;
  char before_ = '\n';   // the byte before pending_
  bool in_key_ = false;  // within a block of a private key
};

}  // namespace assay
