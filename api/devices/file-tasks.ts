/** The tasks of a CPU device that read or write files: its threads import this module at the first of them. */
import { writeFactorsTask } from '../../connectors/model/write-factors.ts';
import { encodeRowsTask } from '../../connectors/output/encode-rows.ts';
import type { GivenHandlers } from '../../cpu/handler.ts';

export const handlers: GivenHandlers = {
  'encode-rows': encodeRowsTask,
  'write-factors': writeFactorsTask,
};
