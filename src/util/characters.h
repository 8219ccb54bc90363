// Classes of characters in source code, and where the names are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace assay {

// A letter, a digit or '_'.
inline bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// White space within a line.
inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// Calls visit(before, name, behind) for every name in the text, that is, every longest run of
// characters that satisfy in_a_name. `before`: the text since the last name; `behind`: all that
// follows. If the text does not end with a name, the last call has the name "".
template <class InAName, class Visit>
void for_each_name(std::string_view text, InAName in_a_name, Visit visit) {
  while (!text.empty()) {
    const auto begin =
        static_cast<std::size_t>(std::ranges::find_if(text, in_a_name) - text.begin());
    const std::string_view from_name = text.substr(begin);
    const auto length = static_cast<std::size_t>(std::ranges::find_if_not(from_name, in_a_name) -
                                                 from_name.begin());
    visit(text.substr(0, begin), from_name.substr(0, length), from_name.substr(length));
    text = from_name.substr(length);
  }
}

}  // namespace assay
