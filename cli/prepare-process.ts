import { makeRoomForFiles } from '../api/devices/file-table.ts';
import { keepCompiled } from '../api/keep-compiled.ts';

/**
 * Prepares this process for a command, before the command is loaded. `installed`: false for sources that run
 * as they are, which keep no compiled code.
 */
export function prepareProcess(installed: boolean): void {
  if (installed) keepCompiled();
  makeRoomForFiles();
}
