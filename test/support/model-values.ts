import type { RecordBatch } from 'apache-arrow';
import type { Model } from '../../index.ts';

/** The factors of a side, row by row. */
export const valuesOf = (side: RecordBatch) => side.data.children[1].children[0].values as Float32Array;

/** The factors of users and items. */
export const factorsOf = ({ userFactors, itemFactors }: Model) => [userFactors, itemFactors].map(valuesOf);
