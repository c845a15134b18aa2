import { open } from 'node:fs/promises';
import type { IdColumn } from './id-column.ts';

/** The ids of one side, and `rank` numbers for each. */
export interface ExportedSide {
  readonly ids: IdColumn;
  readonly factors: Float32Array;
}

export interface ExportedSides {
  readonly user: ExportedSide;
  readonly item: ExportedSide;
}

/** Of the numbers, and a signal that cancels between files. */
export interface ExportForm {
  readonly rank: number;
  readonly precision: 'float32' | 'float16';
  readonly signal: AbortSignal | undefined;
}

export async function writePieces(path: string, pieces: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, 'wx');
  try {
    for (const piece of pieces) await file.writeFile(piece);
  } finally {
    await file.close();
  }
}
