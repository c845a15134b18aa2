/**
 * The workspace of a thread that solves rows; `size` = bytes of a factor row:
 *
 *     matrix     size² / 4              A, or the dual's matrix; nothing for rows above MOST_FORMED
 *     vectors    VECTORS * size + 128   b, the solvers' work, the objective, and s at the end
 *     gathered   the rest               a tile and a part of A, the transposed Θ of the dual, or all panels of the row
 */
import { endOfPanels } from './conjugate-gradient';
import { PANEL } from './panels';

const VECTORS: usize = 6;

/**
 * Most bytes of a factor row for which A is formed: 528 features, since A and a part of it must fit scratch.
 * Longer rows are solved matrix-free, by CG only.
 */
const MOST_FORMED: usize = 4 * 528;

/** True if rows of `size` bytes may be solved from a formed A, and so exactly. */
export function canForm(size: usize): bool {
  return size <= MOST_FORMED;
}

@inline
export function vectorsOf(workspace: usize, size: usize): usize {
  return workspace + (canForm(size) ? (size * size) >> 2 : 0);
}

@inline
export function gatheredOf(workspace: usize, size: usize): usize {
  return vectorsOf(workspace, size) + VECTORS * size + 128;
}

/** s of the row's bias. */
@inline
export function sumsOf(workspace: usize, size: usize): usize {
  return gatheredOf(workspace, size) - size;
}

/** Address of a float64, the row's objective. It is stored after the memory that the solvers use. */
@inline
export function objectiveOf(workspace: usize, size: usize): usize {
  return sumsOf(workspace, size) - size;
}

/** Number of ratings whose panels fit the workspace, in addition to one unpacked panel of θ. */
@inline
export function panelCapacity(workspaceBytes: usize, size: usize, packed: bool): i32 {
  return (
    <i32>((workspaceBytes - gatheredOf(0, size) - (size << 3)) / endOfPanels(0, size, PANEL, packed)) * PANEL
  );
}
