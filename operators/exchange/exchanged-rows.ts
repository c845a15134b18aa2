import { counted, formatBytes } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ChainOperator } from '../pipeline/run-chain.ts';
import type { RowExchange, RowsWork } from '../pipeline/row-tasks.ts';
import { type PartsHome, type RowPart, RowUnit } from '../pipeline/row-unit.ts';
import { eachOf } from '../pipeline/split-tasks.ts';
import { describeExchange, type Exchange } from './exchange.ts';
import {
  bytesOf,
  dividedRows,
  estimatedBytes,
  type ExchangeInput,
  homeOf,
  opened,
} from './exchange-input.ts';
import { partsOf, STREAM_PARTS, UNIT_BYTES } from './part-sizes.ts';

export interface ExchangedOptions {
  readonly by: Exchange;
  /** The number of parts where it is given: then each part is a task. */
  readonly parts: number | undefined;
  /** The operators on the rows of each part. */
  readonly after: readonly ChainOperator[];
}

/** The rows of an input by the parts of an exchange. */
export class ExchangedRows implements RowExchange {
  readonly #input: ExchangeInput;
  readonly #options: ExchangedOptions;

  constructor(input: ExchangeInput, options: ExchangedOptions) {
    [this.#input, this.#options] = [input, options];
  }

  describe(): string {
    const { by, parts } = this.#options;
    const bytes = estimatedBytes(this.#input);
    const number = parts ?? (bytes === undefined ? undefined : partsOf(bytes));
    const about = bytes === undefined ? '' : `, about ${formatBytes(bytes)}`;
    const to = number === undefined ? 'as many parts as the rows need' : counted(number, 'part');
    return `exchange ${describeExchange(by)} to ${to}${about}`;
  }

  async begin(ctx: ExecutionContext): Promise<RowsWork> {
    const { by, parts: given, after } = this.#options;
    const { schema, device } = this.#input;
    const { work, bytes, units: all } = await opened(this.#input, ctx);
    const isOne = given === undefined && all !== undefined && all.length <= 1;
    const parts = given ?? (bytes === undefined ? STREAM_PARTS : partsOf(bytes));
    const home = homeOf(this.#input);
    const units = isOne
      ? all
      : unitsOfParts(await dividedRows(work, { by, parts }, home, ctx), home, given !== undefined);
    return {
      source: schema,
      schema,
      operators: after,
      device,
      bytes: bytesOf(units),
      taken: { kind: 'units', units: eachOf(units) },
    };
  }
}

/** A unit for each part, or for small parts that follow each other. */
function unitsOfParts(byPart: readonly RowPart[][], home: PartsHome, apart: boolean): RowUnit[] {
  const units: RowPart[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const own of byPart) {
    if (own.length === 0) continue;
    const more = bytesOf(own);
    if (apart || bytes + more > UNIT_BYTES) {
      units.push([...own]);
      bytes = more;
    } else {
      units[units.length - 1].push(...own);
      bytes += more;
    }
  }
  return units.map((own) => new RowUnit(own, home));
}
