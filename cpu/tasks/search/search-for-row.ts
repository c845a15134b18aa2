import type { Partition } from '../../../engine/partition.ts';
import type { MatrixView, ScopeOf, TaskHandler } from '../../handler.ts';
import { update, updateImplicit } from '../update.ts';
import { searchOne } from './search.ts';

export const searchForRow: TaskHandler<'search-for-row'> = (scope) => {
  const { values, solving, shift, prior } = scope.params;
  const { rank } = solving.params;
  const { fixedBias, prior: drawn, ...rows } = gather(scope, rank);
  const { factors } = rows;
  const mean = solving.kernel === 'update' ? solving.params.mean : undefined;
  const bias = new Float32Array(1);
  const columns = {
    offsets: Int32Array.of(0, values.length),
    indices: Uint32Array.from(values, (_, k) => k),
    values: Float32Array.from(values),
  };
  const partitions: Readonly<Record<string, Partition>> = {
    block: { layout: 'rating-block', rows: 1, columns },
    shifts: vector('row-shifts', Float32Array.of(shift)),
    ...(mean !== undefined && {
      fixedBias: vector('bias', fixedBias),
      bias: vector('bias', bias),
      ...(prior && { priorBias: vector('bias', Float32Array.of(prior.bias)) }),
    }),
  };
  const matrices: Readonly<Record<string, MatrixView>> = { ...rows, ...(prior && { prior: drawn }) };
  const row = {
    ...scope,
    partition: (name: string) => partitions[name],
    hasInput: (name: string) => name in partitions,
    matrix: (name: string) => matrices[name] ?? scope.matrix(name),
    hasMatrix: (name: string) => name in matrices || scope.hasMatrix(name),
  };
  if (solving.kernel === 'update') update({ ...row, params: { ...solving.params, from: 0, to: 1 } });
  else updateImplicit({ ...row, params: { ...solving.params, from: 0, to: 1 } });
  const x = Array.from(new Float32Array(scope.memory.buffer, factors.pointer, rank));
  const query = mean === undefined ? x : [...x, bias[0] + mean, 1];
  if (!query.every(Number.isFinite)) return { rows: 0, values: { solved: false, items: [], scores: [] } };
  const { rows: searched, found } = searchOne({ ...scope, params: { ...scope.params, query } });
  return { rows: searched, values: { solved: true, ...found } };
};

function vector(layout: string, values: Float32Array): Partition {
  return { layout, rows: values.length, columns: { values } };
}

/**
 * Copies θ and the biases γ of the rated items for the solver. The last three rows of the task's matrix `rows`
 * are for x, its start and its prior.
 */
function gather(scope: ScopeOf<'search-for-row'>, rank: number) {
  const { rated: items, prior } = scope.params;
  const { buffer } = scope.memory;
  const [exact, guide, rows] = ['exact', 'guide', 'rows'].map((name) => scope.matrix(name));
  const all = new Float32Array(buffer, exact.pointer, exact.rows * exact.stride);
  const places = new Uint32Array(buffer, guide.pointer + 16 * guide.stride, guide.stride);
  const own = new Float32Array(buffer, rows.pointer, rows.rows * rows.stride).fill(0);
  const fixedBias = new Float32Array(items.length);
  for (let k = 0; k < items.length; k++) {
    const from = places[items[k]] * exact.stride;
    for (let i = 0; i < rank; i++) own[k * rows.stride + i] = all[from + i];
    fixedBias[k] = all[from + rank + 1];
  }
  const part = (from: number, to: number): MatrixView => ({
    ...rows,
    pointer: rows.pointer + 4 * from * rows.stride,
    rows: to - from,
  });
  const n = items.length;
  own.set(prior?.factors ?? [], (n + 2) * rows.stride);
  return {
    fixed: part(0, n),
    factors: part(n, n + 1),
    previous: part(n + 1, n + 2),
    prior: part(n + 2, n + 3),
    fixedBias,
  };
}
