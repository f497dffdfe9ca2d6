/** Python, with its package `cryptography`. */
import { pythonWith } from './python-modules.js';

export const python = pythonWith('cryptography');
