import { factorFrames, frameRows, readFactorFrame } from '../../connectors/model/factor-frames.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { numbersOf, toHalf } from '../../engine/numbers/half.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { SizedAlsParams } from '../../operators/als/als-params.ts';
import type { RowSolver } from '../../operators/als/rows/row-solver.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';
import { idColumnOf, keysOf } from '../serving/factor-arrays.ts';
import type { FactorRows } from './arriving-rows.ts';
import { requireEquations } from './block-facts.ts';
import type { FixedRows, HeldBlocks } from './held-blocks.ts';
import type { RowPrecision } from './opening.ts';
import type { Parent } from './parent-link.ts';
import { type Request, sumsOf, text, whole } from './requests.ts';
import type { RowBlock } from './row-block.ts';

/**
 * Sends rows and equations to other workers through the parent, and takes theirs. With `float16` all rows of
 * the fixed side are rounded, also a worker's own ones, so that the factors do not depend on the workers that
 * hold them. Rows in float16 are sent in the unit of training, in which they are within its range.
 */
export class RowExchange {
  readonly #parent: Parent;
  readonly #params: SizedAlsParams;
  readonly #isHalf: boolean;
  readonly #fixed: FixedRows;
  readonly #ctx: ExecutionContext;

  constructor(
    parent: Parent,
    { params, exchange }: { readonly params: SizedAlsParams; readonly exchange: RowPrecision },
    fixed: FixedRows,
    ctx: ExecutionContext,
  ) {
    [this.#parent, this.#params, this.#fixed, this.#ctx] = [parent, params, fixed, ctx];
    this.#isHalf = exchange === 'float16';
  }

  /** The answer to a request that sends or takes rows or equations; undefined for any other. */
  answer(
    request: Request,
    block: RowBlock,
    blocks: Pick<HeldBlocks, 'get'>,
  ): Promise<JsonObject> | undefined {
    const { type } = request;
    if (type === 'send') return this.#send(request, block);
    if (type === 'take') return this.#take(request, block, blocks);
    if (type === 'fixed') return this.#fix(request, block);
    if (type === 'equations') return this.#equations(request, block);
    if (type === 'add') return this.#add(request, block);
    if (type === 'previous') return this.#previous(request, block);
    return undefined;
  }

  /**
   * Sends all rows of a block, in frames. With `float16` the rows in memory are rounded too, except if they
   * are to be `exact`: those of the model.
   */
  async sendAll(id: number, block: RowBlock, solver: RowSolver, exact: boolean): Promise<void> {
    const { rank } = this.#params;
    const factors = this.#isHalf && !exact ? solver.roundToHalf() : solver.ofUnit(solver.rows);
    const of = keyCount(block.keys);
    for (const { first, rows, bytes } of factorFrames(idColumnOf(block.keys), factors, rank))
      await this.#parent.send({ type: 'factors', id, side: block.side, first, rows, of }, bytes);
  }

  /** Sends the rows that one block of the other side needs, in frames. */
  async #send({ fields, id }: Request, block: RowBlock): Promise<JsonObject> {
    const needed = block.outTo(whole(fields, 'to'));
    const solver = block.started;
    if (solver === undefined || block.version !== whole(fields, 'version')) return { missing: 'previous' };
    const of = needed?.length ?? keyCount(block.keys);
    if (needed === undefined && fields.whole === true) return { rows: of, whole: true };
    const { rank } = this.#params;
    const rows = needed ?? Uint32Array.from({ length: of }, (_, row) => row);
    const most = frameRows(rank, this.#isHalf ? 2 : 4);
    for (let first = 0; first < of; first += most) {
      const some = rows.subarray(first, first + most);
      const ids = idColumnOf(takeKeys(block.keys, some));
      const values = solver.rowsAt(some);
      const factors = this.#isHalf ? toHalf(values) : solver.ofUnit(values);
      for (const { bytes } of factorFrames(ids, factors, rank))
        await this.#parent.send(
          { type: 'factors', id, side: block.side, first, rows: some.length, of },
          bytes,
        );
    }
    return { rows: of };
  }

  /** Gives a block the rows that it needs of a block of the other side in this worker. */
  async #take({ fields }: Request, block: RowBlock, blocks: Pick<HeldBlocks, 'get'>): Promise<JsonObject> {
    const from = blocks.get(text(fields, 'from'));
    const [version, to] = [whole(fields, 'version'), whole(fields, 'to')];
    const held = from?.started;
    if (from === undefined || held === undefined || from.version !== version) return { missing: 'version' };
    const needed = from.outTo(to);
    const rows = needed === undefined ? held.rows : held.rowsAt(needed);
    const ids = needed === undefined ? from.keys : takeKeys(from.keys, needed);
    const solver = await block.solver(sumsOf(fields));
    await this.#fixed.add(block, solver, version, {
      ids,
      factors: held.isRounded ? rows : this.#rounded(rows),
    });
    return {};
  }

  async #fix({ fields, payload }: Request, block: RowBlock): Promise<JsonObject> {
    const solver = await block.solver(sumsOf(fields));
    const { ids, factors } = this.#read(payload, solver);
    const rows = { ids, factors: factors instanceof Uint16Array ? factors : this.#rounded(factors) };
    await this.#fixed.add(block, solver, whole(fields, 'version'), rows);
    return {};
  }

  async #previous({ fields, payload }: Request, block: RowBlock): Promise<JsonObject> {
    const solver = await block.solver(sumsOf(fields));
    const { ids, factors } = this.#read(payload, solver);
    block.addPrevious(whole(fields, 'version'), solver, { ids, factors: numbersOf(factors) });
    return {};
  }

  /** The rows of a frame in the unit of training. */
  #read(payload: Uint8Array, solver: RowSolver): FactorRows<Float32Array | Uint16Array> {
    const { ids, factors } = readFactorFrame(payload, this.#params.rank);
    return { ids: keysOf(ids), factors: factors instanceof Uint16Array ? factors : solver.toUnit(factors) };
  }

  #rounded(rows: Float32Array): Float32Array | Uint16Array {
    return this.#isHalf ? toHalf(rows) : rows;
  }

  /** Sends this block's share in the equations of one block of the other side, in frames. */
  async #equations({ fields, id }: Request, block: RowBlock): Promise<JsonObject> {
    const { rank } = this.#params;
    requireEquations(this.#ctx, rank);
    const to = whole(fields, 'to');
    if (block.started === undefined || block.version !== whole(fields, 'version'))
      return { missing: 'previous' };
    await this.#fixed.clear();
    const side = block.side === 'users' ? 'items' : 'users';
    let first = 0;
    for await (const { ids, equations } of block.sharesTo(to)) {
      const rows = keyCount(ids);
      for (const { bytes } of factorFrames(idColumnOf(ids), equations, equationColumns(rank, false)))
        await this.#parent.send({ type: 'equations', id, side, first, rows }, bytes);
      first += rows;
    }
    return { rows: first };
  }

  async #add({ fields, payload }: Request, block: RowBlock): Promise<JsonObject> {
    requireEquations(this.#ctx, this.#params.rank);
    const { ids, factors } = readFactorFrame(payload, equationColumns(this.#params.rank, false));
    block.addShare(whole(fields, 'version'), { ids: keysOf(ids), factors: numbersOf(factors) });
    return {};
  }
}
