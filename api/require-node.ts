/** Throws UsageError on a Node that is too old. The first import of index.ts, so that no other module runs before it. */
import { UsageError } from '../engine/errors.ts';
import { tooOldNode } from '../engine/node-version.ts';

const problem = tooOldNode(process.versions.node);
if (problem !== undefined) throw new UsageError(problem);
