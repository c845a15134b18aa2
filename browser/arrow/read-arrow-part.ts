import { copyRow, type Part, plainFeatures } from '../feature-rows.ts';
import { problem } from '../remote-file.ts';
import { ArrowFile, type ArrowPiece, type RangedFile } from './arrow-file.ts';
import { type ArrowValues, isList, readLists, readValues, requireValues } from './arrow-values.ts';

/** Reads the ids of an Arrow file, and the numbers of their rows into `target`; other columns are not read. */
export async function readArrowPart(ranged: RangedFile, width: number, target: Float32Array): Promise<Part> {
  const file = await ArrowFile.open(ranged);
  if (file.rows * width > target.length)
    throw problem(ranged.url, 'the file has more rows than the metadata say', 'Copy the model again');
  const pieces = file.pieces(0, file.rows);
  const ids = file.field('id');
  const read = await Promise.all(
    pieces.map(async (piece) => {
      requireValues(file, piece.batch, ids);
      const [own] = await Promise.all([
        readValues(file, piece, ids),
        readFeatures(file, piece, width, target),
      ]);
      return own;
    }),
  );
  return { rows: file.rows, ids: read };
}

/** Reads the features of rows of one batch to their places in `target`, which has the file's first row first. */
export async function readFeatures(
  file: ArrowFile,
  piece: ArrowPiece,
  width: number,
  target: Float32Array,
): Promise<void> {
  const { url } = file.file;
  const features = file.field('features');
  requireValues(file, piece.batch, features);
  if (isList(features)) {
    const values = await readLists(file, piece, features, width);
    const at = piece.first * width;
    for (let i = 0; i < values.length; i++) {
      if (!Number.isFinite(values[i])) throw problem(url, 'a feature is NaN or infinite');
      target[at + i] = values[i];
    }
    return;
  }
  const [rows, scales] = await Promise.all([
    readValues(file, piece, features),
    file.has('scale') ? readValues(file, piece, file.field('scale')) : ([] as ArrowValues),
  ]);
  for (let row = 0; row < rows.length; row++) {
    const plain = plainFeatures(rows[row], width, scales[row], url);
    copyRow(plain, target, (piece.first + row) * width, width, url);
  }
}
