import {
  type DataType,
  DataType as Types,
  type RecordBatch,
  type Schema,
  vectorFromArray,
} from 'apache-arrow';
import { FactorFlowError, UsageError } from '../../engine/errors.ts';
import { decimalParser } from '../../engine/expressions/decimals.ts';
import { isDecimal, valueTypeOf } from '../../engine/expressions/types.ts';
import { shown } from '../../engine/format.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import { plainRows } from '../../engine/values/plain-values.ts';
import { MapBatches } from './map-batches.ts';

/** A user's pure function from a row to the row to replace it with. */
type RowFunction = (row: Readonly<Record<string, unknown>>, args: unknown) => unknown;

/** Replaces each row, as a plain object, by the result of a function that each thread imports. */
export class MapRows extends MapBatches {
  override readonly name = 'map-rows';
  protected override readonly method = 'mapRows';

  override outputSchema(input: Schema): Schema {
    const schema = super.outputSchema(input);
    const strange = schema.fields.find(({ type }) => !isWritable(type));
    if (strange === undefined) return schema;
    throw new UsageError(`mapRows makes no values of ${strange.type}, the type of "${strange.name}"`, {
      advice: 'Give the option schema with numbers, texts, true and false, dates or timestamps',
    });
  }

  protected override async called(apply: unknown, batch: RecordBatch, args: never): Promise<RecordBatch> {
    const schema = this.outputSchema(batch.schema);
    const rowAt = plainRows(batch.schema, batch.data.children);
    const columns = schema.fields.map((): unknown[] => []);
    for (let row = 0; row < batch.numRows; row++) {
      try {
        const result = (apply as RowFunction)(rowAt(row), args);
        const made = requireRow(result instanceof Promise ? await result : result, schema);
        for (const [i, { name, type, nullable }] of schema.fields.entries())
          columns[i].push(storedValue(made[name] ?? null, { name, type, nullable }));
      } catch (cause) {
        if (cause instanceof FactorFlowError && !(cause instanceof UsageError)) throw cause;
        throw this.failed(cause, batch, row);
      }
    }
    const data = schema.fields.map(({ type }, i) => vectorFromArray(columns[i], type).data[0]);
    return batchOf(schema, batch.numRows, data);
  }
}

function requireRow(made: unknown, { fields }: Schema): Readonly<Record<string, unknown>> {
  if (typeof made !== 'object' || made === null || Array.isArray(made))
    throw new UsageError(`it gave ${shown(made)} in place of a row`);
  const stranger = Object.keys(made).find((key) => !fields.some(({ name }) => name === key));
  if (stranger === undefined) return made as Readonly<Record<string, unknown>>;
  throw new UsageError(`it gave the column "${stranger}", which the schema does not have`);
}

function isWritable(type: DataType): boolean {
  const { isBool, isInt, isFloat, isUtf8, isDate, isTimestamp } = Types;
  if (isFloat(type)) return type.precision > 0;
  if (Types.isDecimal(type)) return type.bitWidth === 128 && isDecimal(valueTypeOf(type));
  return [isBool, isInt, isUtf8, isDate, isTimestamp].some((is) => is(type));
}

/** A value as Arrow's builders take it. Throws UsageError if the column cannot hold it. */
function storedValue(
  value: unknown,
  { name, type, nullable }: { readonly name: string; readonly type: DataType; readonly nullable: boolean },
): unknown {
  const stored = value === null && nullable ? null : fittingValue(value, type);
  if (stored !== undefined) return stored;
  throw new UsageError(`${shown(value)} is no value of "${name}", which is ${type}`);
}

/** undefined for a value of another kind, or beyond the type's range. */
function fittingValue(value: unknown, type: DataType): unknown {
  if (Types.isBool(type)) return typeof value === 'boolean' ? value : undefined;
  if (Types.isUtf8(type)) return typeof value === 'string' ? value : undefined;
  if (Types.isFloat(type))
    return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined;
  if (Types.isInt(type)) {
    const isWhole = typeof value === 'bigint' || Number.isSafeInteger(value);
    if (!isWhole) return undefined;
    const whole = BigInt(value as number | bigint);
    if ((type.isSigned ? BigInt.asIntN : BigInt.asUintN)(type.bitWidth, whole) !== whole) return undefined;
    return type.bitWidth === 64 ? whole : Number(whole);
  }
  if (Types.isDecimal(type)) {
    if (!['number', 'bigint', 'string'].includes(typeof value)) return undefined;
    const units = decimalParser(valueTypeOf(type))(String(value));
    return units === undefined ? undefined : new Uint32Array(BigInt64Array.of(units, units >> 64n).buffer);
  }
  const time = value instanceof Date ? value.getTime() : value;
  return typeof time === 'number' && Number.isSafeInteger(Math.trunc(time)) ? Math.trunc(time) : undefined;
}
