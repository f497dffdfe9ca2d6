/**
 * The page's policy lets no text become a script, which zod would try in order to be faster. Loaded before anything
 * that makes a schema.
 */
import { config } from 'zod';

config({ jitless: true });
