;;; midfill-show.el --- What is shown, and when to ask -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Follows what the user does: when to ask, what is shown, what became of it.
;; Must not know which keys there are.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'midfill-connection)
(require 'midfill-edit)
(require 'midfill-ghost)
(require 'midfill-server)

(defcustom midfill-delay 0
  "Seconds without a key before the server is asked.
The server waits for a pause by itself, so this can be 0."
  :group 'midfill
  :type 'number)

(cl-defstruct (midfill--shown (:copier nil))
  "What is shown."
  candidates
  (index 0)
  (all nil :documentation "these are all there are: the user asked by hand")
  (told nil :documentation "candidates which the server knows to have been shown")
  (tick 0 :documentation "of the buffer when it was last known to be right")
  (connection nil :documentation "where they come from"))

(defvar midfill-mode)

(defvar-local midfill--shown nil
  "What is shown in this buffer; `midfill-completion-map' is in force then.")
(defvar-local midfill--asked-tick 0
  "Tick of the text that was last asked about: moving around asks for nothing.")
(defvar midfill--off nil "Whether the user has switched suggestions off.")
(defvar midfill--buffer nil "Where something is shown, or asked for.")
(defvar midfill--visited nil "The buffer that the user looks at.")
(defvar midfill--focused nil "The buffer that the server knows to be looked at.")
(defvar midfill--place nil "Where point was after the last command.")
(defvar midfill--timer nil "Runs before a request.")
(defvar midfill--cancel nil "Cancels the request that is under way.")
(defvar midfill--unasked nil "What was to be asked before the server could be: place, trigger and step.")
(defvar midfill--serial 0 "Of the newest request; answers to older ones are void.")

(defconst midfill--undo-commands '(undo undo-only undo-redo undo-tree-undo undo-tree-redo undo-fu-only-undo)
  "What takes a change back, behind which nothing is suggested.")

(defconst midfill--invoked 1 "Trigger kind of LSP 3.18; the draft before it counted from 0.")
(defconst midfill--automatic 2 "Trigger kind of LSP 3.18.")

;;; What is shown

(defun midfill--inhibited-p ()
  "Whether nothing may be shown now."
  (or midfill--off buffer-read-only (region-active-p) (minibufferp)
      executing-kbd-macro defining-kbd-macro ; a recorded macro would hold the key but not the text
      (bound-and-true-p isearch-mode)
      completion-in-region-mode ; corfu, too
      (bound-and-true-p company-candidates)
      (and (bound-and-true-p evil-local-mode)
           (not (memq (bound-and-true-p evil-state) '(insert replace emacs))))))

(defun midfill--candidate ()
  "The candidate that is shown."
  (nth (midfill--shown-index midfill--shown) (midfill--shown-candidates midfill--shown)))

(defun midfill--view ()
  "What is left of the suggestion, if it still holds."
  (and midfill--shown (midfill-edit-view (midfill--candidate))))

(defun midfill--hide ()
  "Show nothing."
  (when midfill--shown
    (midfill-ghost-clear)
    (setq midfill--shown nil)))

(defun midfill--redraw ()
  "Draw what holds, drop what does not.  Return whether it holds."
  (let ((view (midfill--view)))
    (if (not view)
        (midfill--hide)
      (let* ((shown midfill--shown) (count (length (midfill--shown-candidates shown))) (candidate (midfill--candidate)))
        (setf (midfill--shown-tick shown) (buffer-chars-modified-tick))
        (midfill-ghost-draw
         view (and (> count 1) (format "(%d/%d)" (1+ (midfill--shown-index shown)) count)))
        (unless (memq candidate (midfill--shown-told shown))
          (push candidate (midfill--shown-told shown))
          (midfill-server-shown (midfill--shown-connection shown) (midfill-candidate-item candidate)))
        t))))

(defun midfill--present (items encoding connection step)
  "Show ITEMS, with columns in ENCODING, from CONNECTION.
STEP is how many candidates to go on from the one that is shown, or nil."
  (let* ((old (midfill--view))
         (kept (and old (midfill--candidate)))
         candidates index)
    (seq-doseq (item items)
      (when-let* ((candidate (midfill-edit-candidate item encoding))
                 (view (midfill-edit-view candidate)))
        (when (and old (equal (midfill-view-ghost old) (midfill-view-ghost view))
                   (= (midfill-view-stop old) (midfill-view-stop view)))
          (setq index (length candidates)))
        (setq candidates (nconc candidates (list candidate)))))
    (when (and step old (not index)) ; the others come behind the one that is shown
      (push kept candidates)
      (setq index 0))
    ;; The same still: it goes on under the name that the server knows to be shown.
    (unless (and (not step) index (null (cdr candidates)))
      (midfill--hide)
      (when candidates
        (setq midfill--shown
              (make-midfill--shown
               :candidates candidates :all (and step t) :connection connection
               :index (if step (mod (+ (or index 0) step) (length candidates)) 0)))
        (midfill--redraw)))))

;;; When to ask

(defun midfill--here ()
  "The place that an answer is for."
  (list (current-buffer) (buffer-chars-modified-tick) (point) (selected-window)))

(defun midfill--cancel-request ()
  "Want no answer any more."
  (cl-incf midfill--serial)
  (when midfill--timer
    (cancel-timer midfill--timer)
    (setq midfill--timer nil))
  (when midfill--cancel
    (funcall (prog1 midfill--cancel (setq midfill--cancel nil)))
    (force-mode-line-update)))

(defun midfill--leave ()
  "Nothing is to be shown any more, wherever it is."
  (midfill--cancel-request)
  (when (buffer-live-p midfill--buffer)
    (with-current-buffer midfill--buffer
      (midfill--hide)))
  (setq midfill--buffer nil midfill--place nil))

(defun midfill--ask (kind step)
  "Ask for suggestions at point with the trigger KIND.
STEP is as in `midfill--present'.
Return whether somebody could be asked."
  (midfill--cancel-request)
  (midfill-server-attach)
  (setq midfill--unasked (list (midfill--here) kind step))
  (when-let* ((connection (midfill-server-connection)))
    (setq midfill--unasked nil)
    (pcase-let* ((`(,uri ,encoding) (midfill-connection-sync connection))
                 (mine midfill--serial)
                 (here (midfill--here))
                 (end (lambda (result)
                        (when (eql mine midfill--serial)
                          (setq midfill--cancel nil)
                          (midfill--answered here result encoding connection step)
                          (force-mode-line-update t)))))
      (setq midfill--buffer (current-buffer)
            midfill--place here
            midfill--asked-tick (buffer-chars-modified-tick)
            midfill--cancel
            (midfill-connection-request
             connection :textDocument/inlineCompletion
             `(:textDocument (:uri ,uri) :position ,(midfill-edit-position encoding) :context (:triggerKind ,kind))
             end
             (lambda (_) (funcall end 'failed))))
      (force-mode-line-update)
      t)))

(defun midfill--ask-late ()
  "Ask what could not be asked before, if point is where it was."
  (pcase-let ((`(,here ,kind ,step) midfill--unasked))
    (setq midfill--unasked nil)
    (when (and here (eq (window-buffer) (car here)))
      (with-current-buffer (window-buffer)
        (when (equal here (midfill--here))
          (midfill--ask kind step))))))

(add-hook 'midfill-server-ready-hook #'midfill--ask-late)

(defun midfill--answered (here result encoding connection step)
  "Show RESULT, what CONNECTION has answered for the place HERE.
ENCODING and STEP as in `midfill--present'."
  (let ((buffer (window-buffer)))
    (when (and (not (eq result 'failed)) (eq buffer (car here)))
      (with-current-buffer buffer
        (when (and (equal here (midfill--here)) (not (midfill--inhibited-p)))
          (midfill--present (if (keywordp (car-safe result)) (plist-get result :items) result)
                            encoding connection step)
          (when (and step (not midfill--shown)) ; the user has asked
            (message "midfill: no suggestion here; M-x midfill-explain says why")))))))

(defun midfill--ask-soon ()
  "Ask for suggestions at point when no key was pressed for `midfill-delay'."
  (let ((here (midfill--here)))
    (setq midfill--buffer (current-buffer)
          midfill--timer
          (run-with-timer midfill-delay nil
                          (lambda ()
                            (setq midfill--timer nil)
                            (when (eq (window-buffer) (car here))
                              (with-current-buffer (window-buffer)
                                (when (equal here (midfill--here))
                                  (midfill--ask midfill--automatic nil)))))))))

(defun midfill--update ()
  "Look at what the last command has done."
  (let ((place (midfill--here)) (shown midfill--shown))
    (cond ((or (midfill--inhibited-p) (eq this-command 'keyboard-quit)) (midfill--leave))
          ((equal place midfill--place))
          (t
           (midfill--cancel-request)
           (setq midfill--place place)
           (when shown
             (let ((candidate (midfill--candidate)))
               (unless (or (midfill--redraw)
                           (eql (midfill--shown-tick shown) (buffer-chars-modified-tick))
                           (midfill-edit-typed-p candidate))
                 (midfill-connection-rejected (midfill--shown-connection shown) (midfill-candidate-item candidate)))))
           (cond ((memq this-command midfill--undo-commands)
                  (setq midfill--asked-tick (buffer-chars-modified-tick)))
                 ((not (eql midfill--asked-tick (buffer-chars-modified-tick)))
                  (midfill--ask-soon)))))))

(defun midfill--make-way (&rest _)
  "Show nothing beside a menu that has come up; ask again when it has gone."
  (when (and midfill-mode (midfill--inhibited-p))
    (midfill--leave)
    (setq midfill--asked-tick 0)))

(defun midfill--look-anew ()
  "Forget which buffer is looked at."
  (setq midfill--visited nil midfill--focused nil))

(defun midfill--focus ()
  "Let the server know which buffer is looked at."
  (unless (eq midfill--visited (current-buffer))
    (setq midfill--visited (current-buffer))
    (midfill-server-attach))
  (when-let* ((connection (midfill-server-connection)))
    (setq midfill--focused (current-buffer))
    (midfill-connection-notify connection :textDocument/didFocus
                           `(:textDocument (:uri ,(car (midfill-connection-sync connection)))))))

(defun midfill--post-command ()
  "Runs after each command, in whatever buffer."
  (with-demoted-errors "midfill: %S" ; or else Emacs would never run it again
    (with-current-buffer (window-buffer)
      (unless (memq midfill--buffer (list nil (current-buffer)))
        (midfill--leave))
      (when midfill-mode
        (unless (eq midfill--focused (current-buffer))
          (midfill--focus))
        (midfill--update)))))

;;; What becomes of it

(defun midfill--accept (kind)
  "Put the next KIND of the suggestion into the text: `word', `line' or `all'."
  (let* ((candidate (midfill--candidate))
         (view (midfill--view))
         (connection (midfill--shown-connection midfill--shown))
         (size (midfill-edit-part (midfill-view-ghost view) kind))
         (stands (+ (midfill-candidate-base candidate) (midfill-view-typed view) size)))
    (midfill-ghost-clear)
    (undo-boundary) ; a step of its own for undo
    (if (midfill-edit-insert candidate view size)
        (progn
          (midfill--hide)
          (midfill-connection-accepted connection (midfill-candidate-item candidate)))
      (setf (midfill--shown-candidates midfill--shown) (list candidate)
            (midfill--shown-index midfill--shown) 0)
      (midfill--redraw)
      (midfill-connection-accepted-part
       connection (midfill-candidate-item candidate)
       (midfill-edit-units (substring (midfill-candidate-whole candidate) 0 stands) "utf-16")))
    (undo-boundary)))

(defun midfill--cycle (step)
  "Show the candidate STEP behind the one that is shown."
  (let* ((shown midfill--shown) (count (length (midfill--shown-candidates shown))))
    (if (or (midfill--shown-all shown) (> count 1))
        (progn
          (setf (midfill--shown-index shown) (mod (+ (midfill--shown-index shown) step) count))
          (midfill--redraw))
      (midfill--ask midfill--invoked step))))

(provide 'midfill-show)
;;; midfill-show.el ends here
