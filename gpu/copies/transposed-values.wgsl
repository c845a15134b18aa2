// A thread finds the row and column of a rating, and that pair in the other block by binary search (columns
// ascend within a row).

#import parts/main
{
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at >= params.count) {
    return;
  }
  // The last row that starts at or before the rating: an empty row starts where the next one does.
  var row = 0u;
  var beyond = params.rows;
  while (beyond - row > 1u) {
    let middle = (row + beyond) / 2u;
    if (row_pointers[middle] <= at) {
      row = middle;
    } else {
      beyond = middle;
    }
  }
  // A pair of row and column may have several ratings, even many, in the same order in both blocks. Finds the
  // first of them in this row (by binary search, since columns ascend).
  let column = indices[at];
  var of_pair = at;
  if (at > row_pointers[row] && indices[at - 1u] == column) {
    var least = row_pointers[row];
    of_pair--;
    while (least < of_pair) {
      let middle = least + (of_pair - least) / 2u;
      if (indices[middle] < column) {
        least = middle + 1u;
      } else {
        of_pair = middle;
      }
    }
  }
  // Binary search for the pair's first rating in the other block's row.
  var first = other_pointers[column];
  var end = other_pointers[column + 1u];
  while (first < end) {
    let middle = first + (end - first) / 2u;
    if (other_indices[middle] < row) {
      first = middle + 1u;
    } else {
      end = middle;
    }
  }
  values[at] = other_values[first + at - of_pair];
}
