// Finds the fenced blocks of a chat answer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::intake {

inline constexpr std::size_t kMostBlocks = 1000;

struct Block {
  std::size_t number = 0, line = 0;  // of the block, and of its fence; both from 1
  std::string info;                  // the text after the opening fence
  std::string above;                 // the line above, at most one empty line apart; else ""
  std::string text;                  // without the fence's indentation; lines end in '\n'
  bool closed = true;
};

struct Chat {
  std::vector<Block> blocks;     // empty blocks are left out
  std::string spoken;            // all text except thoughts, with '\n' line ends
  bool ends_in_thought = false;  // an unclosed thought
};

// Recognises CommonMark fences (``` and ~~~, of any length), with any indentation, after list
// markers and in quotes. Text inside ```markdown is read as if that fence were not there. A thought
// extends from a line that begins with <think> (or <thinking>, <thought>, <reasoning>) to the end
// tag; or from the beginning of the text to an end tag at the start of a line, if there is no
// opening tag.
Chat read_chat(std::string_view markdown);

}  // namespace assay::intake
