import {
  copyRow,
  noSingleRows,
  type PartFile,
  plainFeatures,
  type RowPlaces,
  rowsAt,
} from '../feature-rows.ts';
import { type RangedFile, cancelledBy, problem, type RemoteFile } from '../remote-file.ts';
import { SharedValue } from '../shared-request.ts';
import { arrowTypes } from './arrow-fields.ts';
import { ArrowFile, type ArrowPiece } from './arrow-file.ts';
import {
  type ArrowValues,
  firstValue,
  isList,
  readLists,
  readValues,
  requireValues,
} from './arrow-values.ts';

/** Opens an Arrow file with the columns id and features; other columns are not read. */
export async function openArrowPart(remote: RemoteFile, width: number): Promise<PartFile> {
  const file = await ArrowFile.open(remote);
  const pieces = file.pieces(0, file.rows);
  const ids = () =>
    Promise.all(
      pieces.map((piece) => {
        requireValues(file, piece.batch, file.field('id'));
        return readValues(file, piece, file.field('id'));
      }),
    );
  const readAll = async (target: Float32Array, through: RangedFile) => {
    const own = file.through(through);
    await Promise.all(pieces.map((piece) => readFeatures(own, piece, width, target)));
  };
  const opened = new SharedValue((signal) => {
    const own = file.through(cancelledBy(remote, signal));
    return Promise.all(pieces.map((piece) => placesOf(own, piece, width)));
  });
  return {
    file: remote,
    rows: file.rows,
    ids,
    readAll,
    readRows: async (rows, cached, signal) => rowsAt(await opened.get(signal), rows, width, cached, signal),
  };
}

/** Throws DataError unless the features are lists of `width` float32 numbers. */
async function placesOf(file: ArrowFile, piece: ArrowPiece, width: number): Promise<RowPlaces> {
  const { url } = file.file;
  const features = file.field('features');
  requireValues(file, piece.batch, features);
  const [child] = features.children;
  if (!isList(features) || child?.type !== arrowTypes.float || child.size !== 1) throw noSingleRows(url);
  const value = await firstValue(file, piece, features, width);
  const { at, bytes } = piece.batch.buffers[child.buffer + 1];
  const end = 4 * (value + width * (piece.to - piece.from));
  if (end > bytes) throw problem(url, `a buffer has ${bytes} bytes, need ${end}: the file is damaged`);
  return { first: piece.first, at: at + 4 * value };
}

/** Reads the features of rows of one batch to their places in `target`, which has the file's first row first. */
async function readFeatures(
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
