import type { RecordBatch, Schema } from 'apache-arrow';
import { readableStyle } from '../../engine/values/plain-values.ts';
import { nullableTexts } from '../../engine/values/value-texts.ts';
import { textTable } from './text-table.ts';

/** Most characters of a value to show. */
const MOST_CHARACTERS = 40;

/** Rows as a text table; `more`: further rows follow. */
export function tableText({ fields }: Schema, batches: readonly RecordBatch[], more: boolean): string {
  const rows = batches.flatMap((batch) => {
    const texts = batch.data.children.map((data) => nullableTexts(data, readableStyle));
    return Array.from({ length: batch.numRows }, (_, row) => texts.map((text) => shortened(text(row))));
  });
  const table = textTable({ head: fields.map(({ name }) => name), compact: false }, rows);
  return `${table}${more ? `\nonly the first ${rows.length} rows` : ''}`;
}

function shortened(text: string): string {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}
