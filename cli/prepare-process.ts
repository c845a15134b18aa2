import { makeRoomForFiles } from '../api/devices/file-table.ts';
import { keepCompiled } from '../api/keep-compiled.ts';

/**
 * Prepares this process for a command, before the command is loaded. `installed`: false when running from
 * sources, whose compiled code is not stored.
 */
export function prepareProcess(installed: boolean): void {
  if (installed) keepCompiled();
  makeRoomForFiles();
}
