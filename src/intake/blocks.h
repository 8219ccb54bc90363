// The fenced blocks of a chat answer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::intake {

inline constexpr std::size_t kMostBlocks = 1000;

struct Block {
  std::size_t number = 0, line = 0;  // of the block, and of its fence; both from 1
  std::string info;                  // what stands behind the fence
  std::string above;                 // the line above, at most one empty line between; else ""
  std::string text;                  // without the indentation of the fence; lines end in '\n'
  bool closed = true;
};

struct Chat {
  std::vector<Block> blocks;     // those with nothing in them are left out
  std::string spoken;            // all text but thoughts, with '\n' for line ends
  bool ends_in_thought = false;  // a thought begins and does not end
};

// Fences of CommonMark (``` and ~~~, of any length), with any indentation, behind a list's marker,
// in quotes. What ```markdown encloses is read as if that fence were not there. A thought is what
// stands from a line that begins with <think> (or <thinking>, <thought>, <reasoning>) to the end
// tag; and from the beginning to an end tag that begins a line, where nothing began it.
Chat read_chat(std::string_view markdown);

}  // namespace assay::intake
