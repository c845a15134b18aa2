// Finds the rows of a workgroup: `number` of the workgroup, and `first` of its ROWS rows of [from_row,
// to_row).
  let number = group.y * groups.x + group.x;
  let first = params.from_row + number * ROWS;
  if (first >= params.to_row) {
    return;
  }
