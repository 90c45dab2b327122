;;; midfill-edit.el --- Suggestions as text of a buffer -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Where a suggestion belongs, what of it is still to come, and its insertion.
;; Must not know the server or the screen.

;;; Code:

(require 'cl-lib)

(cl-defstruct (midfill-candidate (:copier nil))
  "A suggestion, and where it belongs; columns are characters."
  (item nil :documentation "as it came from the server, which is told about it")
  (text "" :documentation "what is to stand there")
  (bol nil :documentation "marker, the beginning of the line that `text' begins in")
  (start 0 :documentation "column where `text' begins")
  (after "" :documentation "what follows `text' on its line: it stays")
  (before "" :documentation "what stood between `start' and point when it came")
  (replaced "" :documentation "what stood between point and `after' when it came")
  (base 0 :documentation "characters of `whole' that are accepted and stand in lines above")
  (whole "" :documentation "the whole text"))

(cl-defstruct (midfill-view (:copier nil))
  "What is still to be inserted of a candidate, in positions of the buffer."
  (from 0 :documentation "where `ghost' begins")
  (stop 0 :documentation "where the text that stays begins")
  (ghost "" :documentation "what is to come")
  (typed 0 :documentation "characters of the candidate's text that stand there already")
  (cut "" :documentation "text before point that `ghost' takes the place of")
  (rest "" :documentation "text behind point that `ghost' takes the place of")
  (kept nil :documentation "(GHOST . REST): characters up to the end of one that both hold; or none"))

(defun midfill-edit--width (character encoding)
  "How many units of ENCODING make CHARACTER."
  (pcase encoding
    ("utf-32" 1)
    ("utf-8" (cond ((< character #x80) 1) ((< character #x800) 2) ((< character #x10000) 3) (t 4)))
    (_ (if (< character #x10000) 1 2))))

(defun midfill-edit-units (text encoding)
  "How many units of ENCODING make TEXT."
  (cl-loop for character across text sum (midfill-edit--width character encoding)))

(defun midfill-edit--column (line units encoding)
  "The column of LINE, a string, that is UNITS of ENCODING from its beginning.
It is the last one at most."
  (let ((column 0))
    (while (and (> units 0) (< column (length line)))
      (setq units (- units (midfill-edit--width (aref line column) encoding)))
      (cl-incf column))
    column))

(defun midfill-edit--line ()
  "The beginning of point's line in the whole buffer, and its text."
  (save-excursion
    (save-restriction
      (widen)
      (let ((inhibit-field-text-motion t))
        (cons (line-beginning-position)
              (buffer-substring-no-properties (line-beginning-position) (line-end-position)))))))

(defun midfill-edit-position (encoding)
  "Point as a position of LSP, in units of ENCODING."
  (pcase-let ((`(,bol . ,line) (midfill-edit--line)))
    (list :line (1- (line-number-at-pos nil t))
          :character (midfill-edit-units (substring line 0 (- (point) bol)) encoding))))

;; The specification has an `insertText' that is a string, or a StringValue.
(defun midfill-edit-candidate (item encoding)
  "The candidate that is ITEM, whose columns are in units of ENCODING.
It is nil unless ITEM belongs around point, on its line."
  (pcase-let* ((`(,bol . ,line) (midfill-edit--line))
               (column (- (point) bol))
               (given (plist-get item :insertText))
               (text (if (listp given) (plist-get given :value) given))
               (range (plist-get item :range))
               (first (plist-get range :start))
               (last (plist-get range :end))
               (row (1- (line-number-at-pos nil t)))
               (start column)
               (stop column))
    (when (and range (eql row (plist-get first :line)) (eql row (plist-get last :line)))
      (setq start (midfill-edit--column line (plist-get first :character) encoding)
            stop (midfill-edit--column line (plist-get last :character) encoding)
            range nil))
    (when (and (stringp text) (not range) (<= start column stop))
      (make-midfill-candidate
       :item item :text text :whole text :bol (copy-marker bol) :start start
       :after (substring line stop)
       :before (substring line start column)
       :replaced (substring line column stop)))))

(defun midfill-edit--common (a b)
  "How many characters A and B both begin with."
  (let ((same (compare-strings a nil nil b nil nil)))
    (if (eq same t) (length a) (1- (abs same)))))

(defun midfill-edit--kept (ghost rest)
  "Where the characters of REST stand in the first line of GHOST, in order.
Give `none' if they do not."
  (let ((end (or (string-search "\n" ghost) (length ghost))) (at 0) (passed 0) found)
    (catch 'none
      (cl-loop for character across rest
               for place = (cl-position character ghost :start at :end end)
               do (unless place
                    (throw 'none 'none))
               (push (cons (setq at (1+ place)) (cl-incf passed)) found))
      (nreverse found))))

(defun midfill-edit-view (candidate)
  "What of CANDIDATE is still to come; nil if something else was typed."
  (pcase-let* ((`(,bol . ,line) (midfill-edit--line))
               (column (- (point) bol))
               (start (midfill-candidate-start candidate))
               (after (midfill-candidate-after candidate))
               (stop (- (length line) (length after))))
    (when (and (eql bol (marker-position (midfill-candidate-bol candidate)))
               (<= start column stop)
               (<= (point-min) (+ bol start)) (<= (+ bol stop) (point-max)) ; of a narrowed buffer
               (string-suffix-p after line))
      (let* ((before (substring line start column))
             (rest (substring line column stop))
             (text (midfill-candidate-text candidate))
             (typed (midfill-edit--common before text))
             (ghost (substring text typed))
             (kept (midfill-edit--kept ghost rest)))
        (unless (or (and (< typed (length before)) (not (equal before (midfill-candidate-before candidate))))
                    (equal ghost rest)
                    (equal ghost "")
                    (and (eq kept 'none) (not (equal rest (midfill-candidate-replaced candidate)))))
          (make-midfill-view
           :from (+ bol start typed) :stop (+ bol stop) :ghost ghost :typed typed
           :cut (substring before typed) :rest rest :kept kept))))))

(defun midfill-edit-typed-p (candidate)
  "Whether all of CANDIDATE was typed."
  (pcase-let ((`(,bol . ,line) (midfill-edit--line)))
    (and (eql bol (marker-position (midfill-candidate-bol candidate)))
         (<= (midfill-candidate-start candidate) (length line))
         (string-prefix-p (midfill-candidate-text candidate) (substring line (midfill-candidate-start candidate))))))

(defun midfill-edit-part (ghost kind)
  "How many characters of GHOST are its next KIND: `word', `line' or `all'.
White space goes with what follows it."
  (let* ((size (length ghost))
         (blank (or (string-match-p "[^ \t\r\n]" ghost) size))
         (class (lambda (at) (memq (char-syntax (aref ghost at)) '(?w ?_)))))
    (pcase kind
      ('all size)
      ('line (or (string-search "\n" ghost blank) size))
      (_ (let ((at blank))
           (while (and (< at size)
                       (not (memq (aref ghost at) '(?\s ?\t ?\r ?\n)))
                       (eq (not (funcall class at)) (not (funcall class blank))))
             (cl-incf at))
           at)))))

(defun midfill-edit-insert (candidate view size)
  "Put the first SIZE characters of VIEW into the buffer, point behind them.
Change CANDIDATE to what is left of it.  Return non-nil if that is nothing."
  (let* ((whole (= size (length (midfill-view-ghost view))))
         (part (substring (midfill-view-ghost view) 0 size))
         (kept (midfill-view-kept view))
         (passed (if (listp kept) (cl-loop for (ghost . rest) in kept when (<= ghost size) maximize rest)))
         (end (if whole (midfill-view-stop view) (+ (point) (or passed 0))))
         (last (cl-position ?\n part :from-end t)))
    (goto-char (midfill-view-from view))
    (delete-region (point) end)
    (insert part)
    (when last ; what is left belongs to the last of these lines
      (let ((above (+ (midfill-view-typed view) last 1)))
        (cl-incf (midfill-candidate-base candidate) above)
        (setf (midfill-candidate-text candidate) (substring (midfill-candidate-text candidate) above)
              (midfill-candidate-bol candidate) (copy-marker (- (point) (- size last 1)))
              (midfill-candidate-start candidate) 0)))
    whole))

(provide 'midfill-edit)
;;; midfill-edit.el ends here
