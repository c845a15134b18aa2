/** Layouts of operators/tasks.ts whose column `values` is one float32 buffer on a GPU. */
export const vectorLayouts: readonly string[] = ['bias', 'column-bounds'];
