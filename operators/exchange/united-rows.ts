import type { Schema } from 'apache-arrow';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { RowTasks } from '../pipeline/row-tasks.ts';
import { keepPartitions, RowUnit } from '../pipeline/row-unit.ts';
import type { RowExchange, RowsWork } from '../pipeline/rows-work.ts';
import { estimatedBytes, type ExchangeInput, homeOf, opened } from './exchange-input.ts';
import type { RowStage } from './exchange-room.ts';
import { dividingStages } from './row-stages.ts';

/**
 * The rows of several inputs, one input after the other. The rows that one task of an input returns become
 * the input of one task (a unit).
 */
export class UnitedRows implements RowExchange {
  readonly #schema: Schema;
  readonly #inputs: readonly ExchangeInput[];

  constructor(schema: Schema, inputs: readonly ExchangeInput[]) {
    [this.#schema, this.#inputs] = [schema, inputs];
  }

  describe(): string {
    return 'in the tasks of the inputs, one input after the other';
  }

  stages(): RowStage[] {
    return this.#inputs.flatMap((input) => dividingStages('of a union', 1, input, input.device.parallelism));
  }

  async begin(ctx: ExecutionContext): Promise<RowsWork> {
    const schema = this.#schema;
    const known = this.#inputs.map(estimatedBytes);
    return {
      source: schema,
      schema,
      operators: [],
      device: this.#inputs[0].device,
      ...(known.every((bytes) => bytes !== undefined) && {
        bytes: known.reduce((sum, bytes) => sum + bytes),
      }),
      taken: { kind: 'units', units: this.#units(ctx) },
    };
  }

  async *#units(ctx: ExecutionContext): AsyncGenerator<RowUnit> {
    for (const input of this.#inputs) {
      const { work } = await opened(input, ctx);
      if (work.taken.kind === 'units' && work.operators.length === 0) {
        yield* work.taken.units;
        continue;
      }
      const home = homeOf(input);
      const division = { by: { kind: 'evenly' }, parts: 1 } as const;
      for await (const { refs, divided } of new RowTasks(work, ctx).divided(division)) {
        if (divided.rows === 0) continue;
        const [bytes] = divided.bytes;
        const [of] = await keepPartitions([{ ref: refs[0], bytes, left: 1 }], home, ctx);
        yield new RowUnit([{ of, piece: 0, bytes }], home);
      }
    }
  }
}
