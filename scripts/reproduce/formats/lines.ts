import { readFileSync } from 'node:fs';
import { DataError } from '../../../index.ts';

/** A line's fields and its place, for errors. */
export interface Line {
  readonly fields: readonly string[];
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

/**
 * Lines of a text file as fields that are separated by spaces or tabs. Lines without a field are left out.
 */
export function* linesOf(file: string): Generator<Line> {
  const texts = readFileSync(file, 'utf8').split('\n');
  for (const [index, text] of texts.entries()) {
    const fields = text.split(/\s+/).filter((field) => field !== '');
    if (fields.length > 0) yield { fields, file, line: index + 1 };
  }
}

/** A field as an id: a whole number from 0 to 2^31 - 1. */
export function idOf(field: string | undefined, { file, line }: Line, name: string): number {
  const id = field !== undefined && /^\d{1,10}$/.test(field) ? Number(field) : Number.NaN;
  if (id <= 0x7f_ff_ff_ff) return id;
  throw new DataError(`${field === undefined ? 'no field' : `"${field}"`} where the ${name} should be`, {
    phase: 'read',
    file,
    line,
    advice: 'Give the file as its authors publish it',
  });
}
