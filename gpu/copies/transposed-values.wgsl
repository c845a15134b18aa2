// The values of a block whose columns are the rows of another one: a thread finds its rating's row and
// column, and searches the row of the other block for them, in which columns ascend.

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at >= params.count) {
    return;
  }
  // The last row that begins at the rating or before it: empty rows begin where the next one does.
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
  // A pair may be there several times, even many: both blocks have its ratings in the same order. The first
  // of them is searched, since columns ascend.
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
  // The first rating of that row in the other block's row.
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
